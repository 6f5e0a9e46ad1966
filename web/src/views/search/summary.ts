/** What a search has come to, in a line or two: the best, how far it is, how fast, what failed. */

import { element } from "../../dom";
import { comparison, duration, milliseconds, short } from "../format";
import type { Search } from "./search";
import { bestOf, failures, runs } from "./trials";

export class Summary {
  readonly root: HTMLElement;
  private readonly bar = element("progress", {
    class: "search-progress",
    max: 1,
    value: 0,
    "aria-label": "Trials done",
  });
  private readonly best = element("button", {
    class: "search-best",
    "data-testid": "search-best",
    type: "button",
    disabled: true,
  });
  private readonly rate = element("p", { class: "search-rate", "data-testid": "search-rate" });
  private readonly failed = element("ul", {
    class: "search-failures",
    "data-testid": "search-failures",
    hidden: true,
  });
  private search: Search | null = null;

  constructor(private readonly onChoose: (index: number) => void) {
    this.root = element(
      "div",
      {},
      element("div", { class: "search-summary" }, this.best, this.bar),
      this.rate,
      this.failed,
    );
    this.best.addEventListener("click", () => {
      const winner = this.search && bestOf(this.search.trials);
      if (winner) onChoose(winner.index);
    });
  }

  show(search: Search | null): void {
    this.search = search;
    const share = search?.share ?? null;
    if (share === null) this.bar.removeAttribute("value");
    else this.bar.value = share;
    this.showBest(search);
    this.showRate(search);
    this.showFailures(search);
  }

  private showBest(search: Search | null): void {
    const winner = search && bestOf(search.trials);
    const label = (text: string): HTMLElement => element("span", { class: "best-label" }, text);
    this.best.disabled = !winner;
    delete this.best.dataset.ms;
    if (!winner) {
      this.best.replaceChildren(label("Best"), element("strong", {}, "–"));
      return;
    }
    const seconds = winner.seconds!;
    const speed = search.operations ? `${short(search.operations / seconds / 1e9)} GFLOPS` : "";
    this.best.dataset.ms = String(seconds * 1000);
    this.best.replaceChildren(
      label(
        winner.state === "recalled" ? "Best, known from earlier" : `Best, trial ${winner.index}`,
      ),
      element("strong", {}, `${milliseconds(seconds)} ms`),
      label(
        [speed, search.baseline ? comparison(seconds, search.baseline) : ""]
          .filter(Boolean)
          .join(" · "),
      ),
    );
  }

  private showRate(search: Search | null): void {
    const ran = search ? runs(search.trials) : 0;
    const perSecond = search && search.sampled > 0 ? (ran * 1000) / search.sampled : null;
    const parts: string[] = [];
    if (perSecond !== null) parts.push(`${perSecond.toFixed(1)} trials/s`);
    if (search?.workers)
      parts.push(`${search.workers} ${search.workers === 1 ? "worker" : "workers"}`);
    if (search?.spent) parts.push(duration(search.spent));
    if (search?.state === "paused") parts.push("paused");
    this.rate.textContent = parts.join(" · ");
    this.rate.dataset.perSecond = String(perSecond ?? "");
  }

  private showFailures(search: Search | null): void {
    const found = failures(search?.trials ?? []);
    this.failed.hidden = found.length === 0;
    this.failed.replaceChildren(
      ...found.map(({ reason, count, first }) => {
        const open = element(
          "button",
          { class: "failure", type: "button" },
          `${count} failed: ${reason}`,
        );
        open.addEventListener("click", () => this.onChoose(first));
        return element("li", {}, open);
      }),
    );
  }
}
