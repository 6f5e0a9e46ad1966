/** A trace as a list of steps beside the module after the chosen step, with what the step changed. */

import { element } from "../../dom";
import { highlightedLines } from "../../highlight";
import type { DiffLine, Instruction, ShownTrace, TraceStep } from "../../python/protocol";
import "./trace.css";

interface StepListOptions {
  /** Test ids of the steps and of the module, where this list is the page's main one. */
  ids?: { step: string; module: string };
}

/** Shows one trace at a time; arrow keys go from step to step. */
export class StepList {
  readonly root: HTMLElement;
  private readonly list: HTMLOListElement;
  private readonly caption = element("p", { class: "step-caption", "aria-live": "polite" });
  private readonly code: HTMLElement;
  private readonly ids: StepListOptions["ids"];
  private steps: TraceStep[] = [];
  private instructions: Instruction[] = [];
  private selected = 0;

  constructor(options: StepListOptions = {}) {
    this.ids = options.ids;
    this.list = element("ol", {
      class: "steps",
      role: "listbox",
      tabindex: 0,
      start: 0,
      "aria-label": "Steps of the trace",
    });
    this.code = element("pre", { class: "code", tabindex: 0, "aria-label": "Module after the step" });
    if (this.ids) this.code.dataset.testid = this.ids.module;
    this.root = element(
      "div",
      { class: "stepper" },
      this.list,
      element("div", { class: "step-module" }, this.caption, this.code),
    );
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Show a trace with the modules between its steps, at its last step. */
  show(trace: ShownTrace, steps: TraceStep[]): void {
    this.steps = steps;
    this.instructions = trace.steps;
    this.list.replaceChildren(...steps.map((step) => this.item(step)));
    this.select(steps.length - 1);
  }

  private item({ index, diff }: TraceStep): HTMLElement {
    const instruction = this.instructions[index - 1];
    const { added, removed } = countChanges(diff);
    const item = element(
      "li",
      {
        class: instruction?.isSampling ? "step sampling" : "step",
        role: "option",
        id: `${this.ids?.step ?? "trial-step"}-${index}`,
        "data-testid": this.ids?.step,
        "data-step": index,
      },
      element("span", { class: "step-number", "aria-hidden": "true" }, String(index)),
      instruction ? instructionText(instruction) : element("span", {}, "the program before any step"),
      added || removed ? element("span", { class: "step-change", "aria-hidden": "true" }, `+${added} −${removed}`) : null,
    );
    item.addEventListener("click", () => {
      this.select(index);
      this.list.focus({ preventScroll: true });
    });
    return item;
  }

  private select(index: number): void {
    const step = this.steps[index];
    if (!step) return;
    this.selected = index;
    for (const [i, item] of [...this.list.children].entries()) {
      item.setAttribute("aria-selected", String(i === index));
    }
    const item = this.list.children[index] as HTMLElement;
    this.list.setAttribute("aria-activedescendant", item.id);
    scrollWithin(this.list, item);
    this.caption.textContent = this.describe(step);
    this.code.replaceChildren(diffListing(step.diff));
    const change = this.code.querySelector<HTMLElement>(".added, .removed");
    if (change) scrollWithin(this.code, change, 60);
    else this.code.scrollTop = 0;
  }

  private describe({ index, diff }: TraceStep): string {
    if (index === 0) return "The program before any step";
    const instruction = this.instructions[index - 1];
    const name = instruction?.name.replaceAll("_", " ") ?? "";
    const { added, removed } = countChanges(diff);
    if (!added && !removed) {
      return `Step ${index}: ${name} ${instruction?.isSampling ? "decides" : "looks up"}, the program stays as it is`;
    }
    return `Step ${index}: ${name} writes ${lines(added)} and removes ${lines(removed)}`;
  }

  private onKey(event: KeyboardEvent): void {
    const last = this.steps.length - 1;
    const targets: Record<string, number> = {
      ArrowUp: this.selected - 1,
      ArrowLeft: this.selected - 1,
      ArrowDown: this.selected + 1,
      ArrowRight: this.selected + 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(Math.min(last, Math.max(0, target)));
  }
}

/** The instruction with its decision standing out. */
function instructionText({ text, decision, isSampling }: Instruction): HTMLElement {
  const code = element("code", {});
  const mark = `decision=${decision}`;
  const at = isSampling && decision !== null ? text.lastIndexOf(mark) : -1;
  if (at < 0) {
    code.append(...highlightedLines(text));
    return code;
  }
  code.append(
    ...highlightedLines(text.slice(0, at)),
    element("mark", { class: "decision" }, mark),
    text.slice(at + mark.length),
  );
  return code;
}

function diffListing(diff: DiffLine[]): HTMLElement {
  // Each side is highlighted as a whole: a line alone may be half of something.
  const side = (other: DiffLine["kind"]): DocumentFragment[] =>
    highlightedLines(diff.filter(({ kind }) => kind !== other).map(({ text }) => text).join("\n"));
  const now = side("removed");
  const before = side("added");
  const code = element("code", { class: "listing diff" });
  for (const { kind } of diff) {
    const oldLine = kind === "added" ? undefined : before.shift();
    const line = kind === "removed" ? oldLine : now.shift();
    code.append(element(kind === "removed" ? "del" : "span", { class: `line ${kind}` }, line), "\n");
  }
  return code;
}

function countChanges(diff: DiffLine[]): { added: number; removed: number } {
  const count = (wanted: DiffLine["kind"]): number => diff.filter(({ kind }) => kind === wanted).length;
  return { added: count("added"), removed: count("removed") };
}

function lines(count: number): string {
  return count === 1 ? "1 line" : `${count} lines`;
}

/** Scroll `box` alone, and only as far as needed. */
function scrollWithin(box: HTMLElement, item: HTMLElement, margin = 8): void {
  const outer = box.getBoundingClientRect();
  const inner = item.getBoundingClientRect();
  if (inner.top < outer.top + margin) box.scrollTop -= outer.top + margin - inner.top;
  else if (inner.bottom > outer.bottom - margin) box.scrollTop += inner.bottom - outer.bottom + margin;
}
