/** The trials of a search as rows: in their order, or the fastest first. */

import { element } from "../../dom";
import { comparison, milliseconds } from "../format";
import type { Search } from "./search";
import { bestOf, type ShownTrial } from "./trials";

/** So many rows are shown at first, and with each press of the button. */
const PAGE = 200;

type Order = "trial" | "time";

export class TrialTable {
  readonly root: HTMLElement;
  private readonly rows = element("tbody");
  private readonly more = element("button", {
    class: "button quiet small",
    type: "button",
    hidden: true,
  });
  private readonly headers: Record<Order, HTMLButtonElement>;
  private readonly shown = new Map<number, { row: HTMLTableRowElement; trial: ShownTrial }>();
  private search: Search | null = null;
  private order: Order = "trial";
  private room = PAGE;
  private chosen: number | null = null;

  constructor(private readonly onChoose: (index: number) => void) {
    const sorting = (order: Order, text: string): HTMLButtonElement => {
      const button = element(
        "button",
        { class: "sort", type: "button", title: `Sort by ${order}` },
        text,
      );
      button.addEventListener("click", () => this.sort(order));
      return button;
    };
    this.headers = { trial: sorting("trial", "Trial"), time: sorting("time", "Time, ms") };
    const heads = [this.headers.trial, this.headers.time, "Against unscheduled", "Decisions"];
    const table = element(
      "table",
      { class: "trials" },
      element("caption", { class: "visually-hidden" }, "Trials of the search"),
      element(
        "thead",
        {},
        element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))),
      ),
      this.rows,
    );
    this.root = element("div", { class: "table-box" }, table, this.more);
    this.more.addEventListener("click", () => {
      this.room += PAGE;
      this.update();
    });
    this.rows.addEventListener("keydown", (event) => this.onKey(event));
    this.sort("trial");
  }

  show(search: Search | null): void {
    this.search = search;
    this.room = PAGE;
    this.chosen = null;
    this.shown.clear();
    this.rows.replaceChildren();
    this.update();
  }

  choose(index: number | null): void {
    this.chosen = index;
    for (const { row, trial } of this.shown.values())
      row.setAttribute("aria-selected", String(trial.index === index));
  }

  /** Bring the rows up to date; those of trials that are as they were stay the same elements. */
  update(): void {
    const trials = this.search?.trials ?? [];
    const ordered = this.order === "trial" ? trials : byTime(trials);
    const wanted = ordered.slice(0, this.room);
    const best = bestOf(trials)?.index;
    for (const [at, trial] of wanted.entries()) {
      const there = this.rows.rows[at];
      if (
        there?.dataset.trial === String(trial.index) &&
        this.shown.get(trial.index)?.trial === trial
      )
        continue;
      const row = this.rowOf(trial);
      this.rows.insertBefore(row, this.rows.rows[at] ?? null);
    }
    while (this.rows.rows.length > wanted.length) {
      const last = this.rows.rows[this.rows.rows.length - 1]!;
      if (this.shown.get(Number(last.dataset.trial))?.row === last)
        this.shown.delete(Number(last.dataset.trial));
      last.remove();
    }
    for (const { row, trial } of this.shown.values())
      row.classList.toggle("is-best", trial.index === best);
    const hidden = trials.length - wanted.length;
    this.more.hidden = hidden === 0;
    this.more.textContent = `Show ${Math.min(PAGE, hidden)} more of ${hidden}`;
  }

  private rowOf(trial: ShownTrial): HTMLTableRowElement {
    const known = this.shown.get(trial.index);
    if (known?.trial === trial) return known.row;
    const row = this.makeRow(trial);
    known?.row.remove();
    this.shown.set(trial.index, { row, trial });
    return row;
  }

  private makeRow({
    index,
    state,
    seconds,
    reason,
    sameAs,
    confirmed,
    decisions,
  }: ShownTrial): HTMLTableRowElement {
    const open = element("button", { class: "row-button", type: "button" }, String(index));
    open.setAttribute("aria-label", `Trial ${index}: show its trace`);
    const baseline = this.search?.baseline;
    const against = seconds !== null && baseline ? comparison(seconds, baseline) : "";
    const note =
      { repeated: `as trial ${sameAs}`, recalled: "known from earlier" }[state as string] ??
      against;
    const row = element(
      "tr",
      {
        class: confirmed ? `trial-${state} trial-confirmed` : `trial-${state}`,
        "data-testid": "search-row",
        "data-trial": index,
        "data-state": state,
      },
      element("td", {}, open),
      element("td", { class: "number" }, seconds === null ? "failed" : milliseconds(seconds)),
      element("td", { class: "number soft" }, note),
      element(
        "td",
        {},
        element(
          "div",
          { class: "decisions" },
          ...decisions.map((text) => element("code", { class: "chip" }, text)),
        ),
        reason ? element("div", { class: "reason" }, reason) : null,
      ),
    );
    row.addEventListener("click", () => this.onChoose(index));
    row.setAttribute("aria-selected", String(index === this.chosen));
    if (confirmed) row.title = "Measured again at the end, in turn with the other best trials";
    return row;
  }

  private sort(order: Order): void {
    this.order = order;
    for (const [name, button] of Object.entries(this.headers)) {
      button.parentElement?.setAttribute("aria-sort", name === order ? "ascending" : "none");
    }
    this.update();
  }

  private onKey(event: KeyboardEvent): void {
    const row = (event.target as HTMLElement).closest("tr");
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[
      event.key
    ];
    if (!next) return;
    event.preventDefault();
    next.querySelector("button")?.focus();
    this.onChoose(Number((next as HTMLElement).dataset.trial));
  }
}

function byTime(trials: readonly ShownTrial[]): ShownTrial[] {
  return [...trials].sort(
    (a, b) => (a.seconds ?? Infinity) - (b.seconds ?? Infinity) || a.index - b.index,
  );
}
