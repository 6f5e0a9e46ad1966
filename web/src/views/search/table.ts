/** The trials of a search as rows: in their order, or the fastest first. */

import { signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { repeat } from "lit-html/directives/repeat.js";
import { comparison, timing } from "../format";
import { button, setting } from "../kit";
import type { Search } from "./search";
import { bestOf, byTime, type Trial } from "./trials";

/** Rows shown at first; each press of the button adds as many. */
const PAGE = 200;

type Order = "trial" | "time";

export class TrialTable {
  private readonly order = signal<Order>("trial");
  /** How many rows a search may have. */
  private readonly room = signal<{ search: Search | null; rows: number }>({
    search: null,
    rows: PAGE,
  });

  constructor(private readonly onChoose: (index: number) => void) {}

  template(search: Search | null, chosen: number | null): TemplateResult {
    const trials = search?.trials ?? [];
    const { room } = this;
    const rows = room.value.search === search ? room.value.rows : PAGE;
    const order = this.order.value;
    const shown = (order === "trial" ? trials : byTime(trials)).slice(0, rows);
    const best = bestOf(trials)?.index;
    const hidden = trials.length - shown.length;
    // One stop of the Tab key for all rows; arrow keys go from one to the next.
    const stop = shown.some(({ index }) => index === chosen) ? chosen : shown[0]?.index;
    const head = (by: Order, text: string): TemplateResult => html`<th scope="col"
      aria-sort=${by === order ? "ascending" : "none"}><button class="sort" type="button"
      title="Sort by ${by}" @click=${setting(this.order, by)}>${text}</button></th>`;
    const row = (trial: Trial): unknown => {
      const { index } = trial;
      const marks = [index === best, index === chosen, index === stop] as const;
      return guard([trial, search?.baseline, ...marks], () =>
        this.row(trial, search?.baseline ?? null, ...marks),
      );
    };
    const more = `Show ${Math.min(PAGE, hidden)} more of ${hidden}`;
    return html`<div class="table-box">
      <table class="data-table trials">
        <caption class="visually-hidden">Trials of the search</caption>
        <thead><tr>${head("trial", "Trial")}${head("time", "Time")}
          <th scope="col">Speedup</th><th scope="col">Decisions</th></tr></thead>
        <tbody @keydown=${this.onKey}>${repeat(shown, ({ index }) => index, row)}</tbody>
      </table>
      ${button(more, setting(room, { search, rows: rows + PAGE }), {
        kind: "quiet small",
        hidden: !hidden,
      })}
    </div>`;
  }

  private row(
    trial: Trial,
    baseline: number | null,
    best: boolean,
    chosen: boolean,
    stop: boolean,
  ): TemplateResult {
    const { index, state, seconds, reason, sameAs, confirmed, decisions } = trial;
    const notes: Partial<Record<Trial["state"], string>> = {
      repeated: `duplicate of trial ${sameAs}`,
      recalled: "from an earlier search",
    };
    const note =
      notes[state] ?? (seconds !== null && baseline ? comparison(seconds, baseline) : "");
    const kinds = [`trial-${state}`, confirmed && "trial-confirmed", best && "is-best"];
    const chips = decisions.map((text) => html`<code class="chip">${text}</code>`);
    const again = "Measured again at the end, in turn with the other best trials";
    return html`<tr class=${kinds.filter(Boolean).join(" ")}
      data-testid="search-row" data-trial=${index} data-state=${state} aria-selected=${chosen}
      title=${confirmed ? again : nothing} @click=${() => this.onChoose(index)}>
      <td><button class="row-button" type="button" tabindex=${stop ? 0 : -1}
        aria-label="Trial ${index}: show its trace">${index}</button></td>
      <td>${seconds === null ? "failed" : timing(seconds)}</td>
      <td class="soft">${note}</td>
      <td><div class="decisions">${chips}</div>
        ${reason ? html`<div class="reason">${reason}</div>` : nothing}</td>
    </tr>`;
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    const row = (event.target as HTMLElement).closest("tr");
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[
      event.key
    ];
    if (!(next instanceof HTMLElement)) return;
    event.preventDefault();
    next.querySelector("button")?.focus();
    this.onChoose(Number(next.dataset.trial));
  };
}
