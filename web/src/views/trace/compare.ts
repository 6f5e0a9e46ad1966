/** Two traces side by side: their steps aligned, both loop nests, and how the programs differ. */

import { element } from "../../dom";
import type { Instruction, NestEntry, TraceComparison, TraceStep } from "../../python/protocol";
import { countChanges, diffListing, markedLines } from "./diff";
import { nestList } from "./nest";
import { instructionText } from "./steps";
import "./compare.css";

/** One of the two traces. */
export interface Side {
  title: string;
  instructions: Instruction[];
  steps: TraceStep[];
}

export class TraceComparer {
  readonly root: HTMLElement;
  private readonly list = element("div", {
    class: "pairs",
    role: "listbox",
    tabindex: 0,
    "aria-label": "Steps of both traces",
  });
  private readonly heads = element("div", { class: "pair-heads", "aria-hidden": "true" });
  private readonly caption = element("p", { class: "step-caption", "aria-live": "polite" });
  private readonly nests: [HTMLElement, HTMLElement];
  private readonly verdict = element("h2", {
    class: "compare-verdict",
    "data-testid": "trace-compare-verdict",
  });
  private readonly diff = element("pre", {
    class: "code",
    tabindex: 0,
    "aria-label": "How the second program differs from the first in the end",
    "data-testid": "trace-compare-diff",
  });
  private sides: [Side, Side] | null = null;
  private rows: TraceComparison["rows"] = [];
  private current = 0;

  constructor() {
    const nest = (which: string): HTMLElement =>
      element("div", {
        class: "nest",
        tabindex: 0,
        role: "region",
        "aria-label": `Loop nest of the ${which} trace`,
        "data-testid": "trace-compare-nest",
      });
    this.nests = [nest("first"), nest("second")];
    this.root = element(
      "div",
      { class: "comparer", "data-testid": "trace-compare" },
      element("div", { class: "pair-box" }, this.heads, this.list),
      this.caption,
      element("div", { class: "compare-nests" }, ...this.nests),
      this.verdict,
      this.diff,
    );
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  show(first: Side, second: Side, comparison: TraceComparison): void {
    this.sides = [first, second];
    this.rows = comparison.rows;
    this.heads.replaceChildren(...this.sides.map(({ title }) => element("span", {}, title)));
    const decided = new Set(comparison.decided);
    this.list.replaceChildren(
      ...comparison.rows.map((row, number) => this.row(row, number, decided.has(number))),
    );
    const lines = markedLines(comparison.diff);
    const { added, removed } = countChanges(lines);
    this.verdict.textContent = comparison.equal
      ? "Both arrive at the same program"
      : `In the end the second program has ${added} lines that the first has not, and lacks ${removed}`;
    this.diff.replaceChildren(diffListing(lines));
    this.select(comparison.rows.length - 1);
  }

  private row(row: [number | null, number | null], number: number, decided: boolean): HTMLElement {
    const missing = row.includes(null);
    const item = element(
      "div",
      {
        class: `pair ${missing ? "only" : decided ? "decided" : "same"}`,
        role: "option",
        id: `trace-pair-${number}`,
        "data-testid": "trace-pair",
        "aria-selected": "false",
      },
      ...row.map((step, side) => this.cell(step, side)),
    );
    item.addEventListener("click", () => {
      this.select(number);
      this.list.focus({ preventScroll: true });
    });
    return item;
  }

  private cell(step: number | null, side: number): HTMLElement {
    if (step === null) return element("span", { class: "pair-none" }, "not there");
    const instruction = this.sides![side]!.instructions[step - 1];
    return element(
      "span",
      {},
      element("span", { class: "step-number", "aria-hidden": "true" }, String(step)),
      instruction ? instructionText(instruction) : "the program before any step",
    );
  }

  private select(number: number): void {
    const row = this.rows[number];
    if (!row || !this.sides) return;
    this.list.children[this.current]?.setAttribute("aria-selected", "false");
    this.current = number;
    const item = this.list.children[number] as HTMLElement;
    item.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", item.id);
    const top = item.offsetTop - this.list.offsetTop;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    const bottom = top + item.offsetHeight - this.list.clientHeight;
    if (bottom > this.list.scrollTop) this.list.scrollTop = bottom;
    const said: string[] = [];
    for (const [side, nest] of this.nests.entries()) {
      const { title, steps } = this.sides[side]!;
      // A trace that has no such step stands where it was after the one before.
      const reached = this.rows
        .slice(0, number + 1)
        .findLast((each) => each[side as 0 | 1] !== null)![side as 0 | 1]!;
      const own = row[side as 0 | 1] !== null;
      said.push(`${title} ${own ? steps[reached]!.words : "has no such step"}`);
      nest.replaceChildren(
        element("h2", { class: "nest-heading" }, title),
        nestList(nestAt(steps, reached), own && steps[reached]!.changed),
      );
    }
    this.caption.textContent = `${said.join("; ")}.`;
  }

  private onKey(event: KeyboardEvent): void {
    const last = this.rows.length - 1;
    const targets: Record<string, number> = {
      ArrowUp: this.current - 1,
      ArrowLeft: this.current - 1,
      ArrowDown: this.current + 1,
      ArrowRight: this.current + 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(Math.min(last, Math.max(0, target)));
  }
}

/** The nest after a step: that of the last step that changed the program. */
function nestAt(steps: TraceStep[], index: number): NestEntry[] {
  return steps.slice(0, index + 1).findLast(({ nest }) => nest !== null)?.nest ?? [];
}
