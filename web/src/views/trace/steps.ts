/** A trace as a list of steps, with the loop nest and the module after the chosen one. */

import { element } from "../../dom";
import { highlightedLines } from "../../highlight";
import type { Instruction, ShownTrace, StepOutcome, TraceStep } from "../../python/protocol";
import { countChanges, diffListing, markedLines, settled } from "./diff";
import { type FilterIds, StepFilter } from "./filter";
import { nestList } from "./nest";
import { type Effect, effectSentence, effects, effectText } from "./timing";
import "./trace.css";

interface StepListOptions {
  /** Test ids of the parts, where this list is the page's main one. */
  ids?: { step: string; module: string; nest: string; filter: FilterIds };
  onSelect?: (index: number) => void;
}

/** Shows one trace at a time; arrow keys go from step to step. */
export class StepList {
  readonly root: HTMLElement;
  private readonly list: HTMLOListElement;
  private readonly filter: StepFilter;
  private readonly caption = element("p", { class: "step-caption", "aria-live": "polite" });
  private readonly nest: HTMLElement;
  private readonly code: HTMLElement;
  private readonly ids: StepListOptions["ids"];
  private steps: TraceStep[] = [];
  private instructions: Instruction[] = [];
  private pictures = new Map<number, [listing: HTMLElement, nest: HTMLElement]>();
  private effects = new Map<number, Effect>();
  private current = 0;
  private frame = 0;

  constructor(private readonly options: StepListOptions = {}) {
    this.ids = options.ids;
    this.list = element("ol", {
      class: "steps",
      role: "listbox",
      tabindex: 0,
      start: 0,
      "aria-label": "Steps of the trace",
    });
    this.filter = new StepFilter(() => this.sift(), this.ids?.filter);
    this.nest = element("div", {
      class: "nest",
      tabindex: 0,
      role: "region",
      "aria-label": "Loop nest after the step",
      "data-testid": this.ids?.nest,
    });
    this.code = element("pre", {
      class: "code",
      tabindex: 0,
      role: "group",
      "aria-label": "Module after the step",
      "data-testid": this.ids?.module,
    });
    this.root = element(
      "div",
      { class: "stepper" },
      element("div", { class: "step-box" }, this.filter.root, this.list),
      this.caption,
      this.code,
      this.nest,
    );
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** The chosen step. */
  get selected(): number {
    return this.current;
  }

  /** Show a trace with the modules between its steps, at its last step or at `index`. */
  show(trace: Pick<ShownTrace, "steps">, steps: TraceStep[], index = steps.length - 1): void {
    this.steps = steps;
    this.instructions = trace.steps;
    this.pictures.clear();
    this.list.replaceChildren(...steps.map((step) => this.item(step)));
    this.filter.root.hidden = steps.length < 4;
    this.setTimes(new Map());
    this.sift();
    this.select(Math.min(Math.max(0, index), steps.length - 1));
  }

  /** Go to a step. */
  select(index: number): void {
    const step = this.steps[index];
    if (!step) return;
    this.list.children[this.current]?.setAttribute("aria-selected", "false");
    this.current = index;
    const item = this.list.children[index] as HTMLElement;
    item.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", item.id);
    scrollWithin(this.list, item);
    this.caption.textContent = this.describe(step);
    // Of steps that a held key runs through only those are drawn that are seen.
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
    this.options.onSelect?.(index);
  }

  private draw(): void {
    const [listing, nest] = this.picture(this.current);
    this.code.replaceChildren(listing);
    this.nest.replaceChildren(nest);
    const change = this.code.querySelector<HTMLElement>(".added, .removed");
    if (change) scrollWithin(this.code, change, 60);
    else this.code.scrollTop = 0;
    const marked = this.nest.querySelector<HTMLElement>("[data-change] > .nest-bar");
    this.nest.scrollTop = 0;
    if (marked) scrollWithin(this.nest, marked);
  }

  /** The module and the nest after a step, made once. */
  private picture(index: number): [HTMLElement, HTMLElement] {
    const known = this.pictures.get(index);
    if (known) return known;
    const step = this.steps[index]!;
    // Where a step leaves the program as it was, the last change tells what it is.
    const source = this.steps.slice(0, index + 1).findLast(({ diff }) => diff !== null)!;
    const fresh = source === step && step.changed;
    const lines = markedLines(source.diff!);
    const nest = element(
      "div",
      {},
      element("h2", { class: "nest-heading" }, "Loop nest"),
      fresh && step.gone?.length
        ? element("p", { class: "nest-gone" }, `Gone: ${step.gone.join(", ")}`)
        : null,
      nestList(source.nest ?? [], fresh),
    );
    const made: [HTMLElement, HTMLElement] = [diffListing(fresh ? lines : settled(lines)), nest];
    this.pictures.set(index, made);
    return made;
  }

  /** Show how long the program takes after steps; `running` is the step that is measured now. */
  setTimes(outcomes: ReadonlyMap<number, StepOutcome>, running: number | null = null): void {
    this.effects = effects(this.steps, outcomes);
    this.list.classList.toggle("has-times", outcomes.size > 0 || running !== null);
    for (const [index, item] of [...this.list.children].entries()) {
      item
        .querySelector(".step-time")
        ?.replaceWith(timeCell(this.effects.get(index), index === running));
    }
    const step = this.steps[this.current];
    if (step) this.caption.textContent = this.describe(step);
  }

  private item({ index, changed, diff, words }: TraceStep): HTMLElement {
    const instruction = this.instructions[index - 1];
    const { added, removed } = countChanges(changed ? markedLines(diff!) : []);
    const classes = ["step"];
    if (instruction?.isSampling) classes.push("sampling");
    else if (!changed && index) classes.push("looks-up");
    const item = element(
      "li",
      {
        class: classes.join(" "),
        role: "option",
        id: `${this.ids?.step ?? "trial-step"}-${index}`,
        "data-testid": this.ids?.step,
        "data-step": index,
        "data-words": words,
        "data-changed": changed,
        "aria-selected": "false",
      },
      element("span", { class: "step-number", "aria-hidden": "true" }, String(index)),
      instruction
        ? instructionText(instruction)
        : element("span", {}, "the program before any step"),
      added || removed
        ? element("span", { class: "step-change", "aria-hidden": "true" }, `+${added} −${removed}`)
        : null,
      timeCell(undefined, false),
    );
    item.addEventListener("click", () => {
      this.select(index);
      this.list.focus({ preventScroll: true });
    });
    return item;
  }

  private describe(step: TraceStep): string {
    const effect = this.effects.get(step.index);
    return effect ? `${this.tell(step)} ${effectSentence(effect)}` : this.tell(step);
  }

  private tell({ index, changed, diff, words }: TraceStep): string {
    if (index === 0) return "The program before any step.";
    const start = `Step ${index} ${words}`;
    if (!changed) return `${start}. The program stays as it is.`;
    const { added, removed, shifted } = countChanges(markedLines(diff!));
    const moved = shifted ? `; ${lines(shifted)} stay but for the indentation` : "";
    return `${start}. It writes ${lines(added)} and removes ${lines(removed)}${moved}.`;
  }

  /** Hide the steps that are not looked for. */
  private sift(): void {
    let shown = 0;
    for (const [index, item] of [...this.list.children].entries()) {
      const step = this.steps[index]!;
      const text = `${this.instructions[index - 1]?.text ?? ""} ${step.words}`;
      const wanted = this.filter.wants(
        text,
        step.changed || this.instructions[index - 1]?.isSampling === true,
      );
      (item as HTMLElement).hidden = !wanted;
      shown += Number(wanted);
    }
    this.filter.report(shown, this.steps.length);
  }

  private onKey(event: KeyboardEvent): void {
    const shown = this.steps
      .map(({ index }) => index)
      .filter((index) => !(this.list.children[index] as HTMLElement).hidden);
    const before = shown.filter((index) => index < this.current).at(-1);
    const after = shown.find((index) => index > this.current);
    const targets: Record<string, number | undefined> = {
      ArrowUp: before,
      ArrowLeft: before,
      ArrowDown: after,
      ArrowRight: after,
      Home: shown[0],
      End: shown.at(-1),
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    const target = targets[event.key];
    if (target !== undefined) this.select(target);
  }
}

/** The instruction with its decision standing out. */
export function instructionText({ text, decision, isSampling }: Instruction): HTMLElement {
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

function timeCell(effect: Effect | undefined, running: boolean): HTMLElement {
  const cell = element("span", { class: "step-time" });
  if (running) cell.append("measuring …");
  if (!effect || running) return cell;
  cell.dataset.testid = "trace-step-time";
  cell.dataset.state = effect.state;
  cell.append(
    element("span", { class: "step-time-text", title: effect.reason }, effectText(effect)),
  );
  if (effect.seconds !== null) {
    const bar = element("span", { class: "step-time-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(effect.share));
    cell.append(bar);
    cell.dataset.seconds = String(effect.seconds);
    if (effect.factor !== null) cell.dataset.factor = String(effect.factor);
  }
  return cell;
}

function lines(count: number): string {
  return count === 1 ? "1 line" : `${count} lines`;
}

/** Scroll `box` alone, and only as far as needed. */
function scrollWithin(box: HTMLElement, item: HTMLElement, margin = 8): void {
  const outer = box.getBoundingClientRect();
  const inner = item.getBoundingClientRect();
  if (inner.top < outer.top + margin) box.scrollTop -= outer.top + margin - inner.top;
  else if (inner.bottom > outer.bottom - margin)
    box.scrollTop += inner.bottom - outer.bottom + margin;
}
