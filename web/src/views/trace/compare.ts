/** Two traces side by side: their steps aligned, both loop nests, and how the programs differ. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { element } from "../../dom";
import type { TraceComparison, TraceStep } from "../../python/wire";
import { counted } from "../format";
import { listbox, once, reactive } from "../kit";
import { countChanges, diffListing, markedLines } from "./diff";
import { nestList } from "./nest";
import { instructionText } from "./steps";
import "./compare.css";

/** One of the two traces. */
export interface Side {
  title: string;
  steps: TraceStep[];
}

export interface Compared {
  sides: [Side, Side];
  comparison: TraceComparison;
}

const BOTH = [0, 1] as const;

export function traceComparer(compared: ReadonlySignal<Compared | null>): HTMLElement {
  const root = element("div", { class: "comparer", "data-testid": "trace-compare" });
  const selected = signal(0);
  effect(() => {
    selected.value = (compared.value?.comparison.rows.length ?? 1) - 1;
  });
  /** How far each side is at the chosen row; one that has no such step is where it was before. */
  const reached = computed(() => {
    if (!compared.value) return [];
    const { sides, comparison } = compared.value;
    const rows = comparison.rows.slice(0, selected.value + 1);
    return BOTH.map((which) => {
      const { title, steps } = sides[which];
      const step = rows.findLast((row) => row[which] !== null)?.[which] ?? 0;
      const own = rows.at(-1)?.[which] !== null;
      const nest = steps.slice(0, step + 1).findLast((each) => each.nest !== null)?.nest ?? [];
      return {
        title,
        said: `${title} ${own ? steps[step]!.words : "has no such step"}`,
        picture: () => html`<h2 class="nest-heading">${title}</h2>
          ${nestList(nest, own && steps[step]!.changed)}`,
      };
    });
  });

  const cell = ({ steps }: Side, step: number | null): TemplateResult =>
    step === null
      ? html`<span class="pair-none">not there</span>`
      : html`<span><span class="step-number" aria-hidden="true">${step}</span>${instructionText(
          steps[step]!,
        )}</span>`;
  const end = computed(() => {
    const { sides, comparison } = compared.value!;
    const { equal, diff } = comparison;
    const lines = markedLines(diff);
    const { added, removed } = countChanges(lines);
    const pair = `${sides[1].title}, compared with ${sides[0].title}`;
    return {
      lines,
      pair,
      verdict: equal
        ? "Both end with the same program"
        : `${pair}: ${counted(added, "line")} added, ${removed} removed`,
    };
  });

  const template = ({ sides, comparison: { rows, decided } }: Compared): TemplateResult => {
    const titles = sides.map(({ title }) => html`<span>${title}</span>`);
    const said = `${reached.value.map((side) => side.said).join("; ")}.`;
    return html`<div class="pair-box">
        <div class="pair-heads" aria-hidden="true">${titles}</div>
        ${listbox({
          label: "Steps of both traces",
          kind: "pairs",
          id: "trace-pair",
          optionTestId: "trace-pair",
          chosen: selected.value,
          choose: (row) => {
            selected.value = row;
          },
          options: rows.map((row, at) => ({
            kind: `pair ${row.includes(null) ? "only" : decided.includes(at) ? "decided" : ""}`,
            content: once(row, () => BOTH.map((which) => cell(sides[which], row[which]))),
          })),
        })}
      </div>
      <p class="step-caption" aria-live="polite">${said}</p>
      <div class="compare-nests">${reached.value.map(
        ({ title, picture }) => html`<div class="nest" tabindex="0" role="region"
          aria-label="Loop nest of ${title}" data-testid="trace-compare-nest">${once(picture, picture)}</div>`,
      )}</div>
      <h2 class="compare-verdict" data-testid="trace-compare-verdict">${end.value.verdict}</h2>
      <pre class="code" tabindex="0" role="group" aria-label=${end.value.pair}
        data-testid="trace-compare-diff">${once(end.value, () => diffListing(end.value.lines))}</pre>`;
  };
  return reactive(root, () => (compared.value ? template(compared.value) : ""));
}
