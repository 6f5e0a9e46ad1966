/** A trace as a list of steps, with the loop nest and the module after the chosen one. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { element, scrollWithin } from "../../dom";
import type { StepOutcome, TraceStep } from "../../python/wire";
import { counted } from "../format";
import { checkbox, fieldValue, listbox, once, perFrame, python, reactive } from "../kit";
import { countChanges, diffListing, markedLines, settled } from "./diff";
import { nestList } from "./nest";
import { type Effect, effectSentence, effects, effectText } from "./timing";
import "./trace.css";

export type Times = ReadonlyMap<number, StepOutcome>;
export const NO_TIMES: Times = new Map();

interface StepListState {
  steps: ReadonlySignal<readonly TraceStep[]>;
  selected: Signal<number>;
  times?: ReadonlySignal<Times>;
  /** The step that is timed now. */
  running?: ReadonlySignal<number | null>;
  /** Begins the ids of its parts. */
  id: string;
}

/** Shows one trace at a time; arrow keys go from step to step. */
export function stepList(state: StepListState): HTMLElement {
  const text = signal("");
  const changesOnly = signal(false);
  const { steps } = state;
  const selected = computed(() => Math.min(state.selected.value, steps.value.length - 1));
  const times = computed(() => effects(steps.value, state.times?.value ?? NO_TIMES));
  const listed = computed(() => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return steps.value.flatMap(({ index, changed, words: done, instruction }) => {
      const searched = `${instruction?.text ?? ""} ${done}`.toLowerCase();
      const matters = changed || instruction?.isSampling === true;
      const matches = words.every((word) => searched.includes(word));
      return matches && (matters || !changesOnly.value) ? [index] : [];
    });
  });
  const name = (part: string): string => `${state.id}-${part}`;

  const content = (step: TraceStep): TemplateResult => {
    const { index, changed, diff } = step;
    const { added, removed } = countChanges(changed ? markedLines(diff!) : []);
    return html`<span class="step-number" aria-hidden="true">${index}</span
      >${instructionText(step)}${
        added || removed
          ? html`<span class="step-change" aria-hidden="true">+${added} −${removed}</span>`
          : nothing
      }`;
  };
  const list = (): TemplateResult => {
    const shown = new Set(listed.value);
    const hasTimes = state.times?.value.size || (state.running?.value ?? null) !== null;
    return listbox({
      label: "Steps of the trace",
      kind: hasTimes ? "steps has-times" : "steps",
      id: name("step"),
      optionTestId: name("step"),
      chosen: selected.value,
      choose: (index) => {
        state.selected.value = index;
      },
      options: steps.value.map((step) => {
        const { index, changed, instruction } = step;
        const sampling = instruction?.isSampling;
        return {
          kind: `step ${sampling ? "sampling" : !changed && index ? "looks-up" : ""}`,
          hidden: !shown.has(index),
          content: html`${guard([step], () => content(step))}${timeCell(
            times.value.get(index),
            state.running?.value === index,
          )}`,
        };
      }),
    });
  };

  /** The chosen step with what it made of the program. */
  const picture = computed(() => {
    const step = steps.value[selected.value];
    if (!step) return null;
    // Where a step leaves the program as it was, the last change tells what it is.
    const source = steps.value.slice(0, step.index + 1).findLast(({ diff }) => diff !== null)!;
    return { step, source, fresh: source === step && step.changed };
  });
  const drawn = perFrame(picture);
  const module = (): unknown => {
    const { source, fresh } = drawn.value!;
    const lines = markedLines(source.diff!);
    return diffListing(fresh ? lines : settled(lines));
  };
  const nest = (): TemplateResult => {
    const { step, source, fresh } = drawn.value!;
    return html`<h2 class="nest-heading">Loop nest</h2>
      ${fresh && step.removed?.length ? html`<p class="nest-removed">Removed: ${step.removed.join(", ")}</p>` : nothing}
      ${nestList(source.nest ?? [], fresh)}`;
  };
  const caption = computed(() => {
    const step = steps.value[selected.value];
    const effect = step && times.value.get(step.index);
    return step ? [tell(step), ...(effect ? [effectSentence(effect)] : [])].join(" ") : "";
  });

  const template = (): TemplateResult => html`<div class="step-box">
      <div class="step-filter" role="search" aria-label="Steps" ?hidden=${steps.value.length < 4}>
        <input type="search" placeholder="Find steps" aria-label="Find steps"
          data-testid=${name("find")} @input=${(event: Event) => {
            text.value = fieldValue(event);
          }}>
        ${checkbox("Hide get_* steps", { checked: changesOnly, testId: name("changes-only") })}
        <span class="step-count" role="status">${
          listed.value.length === steps.value.length
            ? ""
            : `${listed.value.length} of ${steps.value.length}`
        }</span>
      </div>
      ${list()}
    </div>
    <p class="step-caption" aria-live="polite">${caption.value}</p>
    <pre class="code" tabindex="0" role="group" aria-label="Module after the step"
      data-testid=${name("module")}>${drawn.value ? once(drawn.value, module) : nothing}</pre>
    <div class="nest" tabindex="0" role="region" aria-label="Loop nest after the step"
      data-testid=${name("loopnest")}>${drawn.value ? once(drawn.value, nest) : nothing}</div>`;

  let scrolled: unknown = null;
  const root = element("div", { class: "stepper" });
  return reactive(root, template, () => {
    if (scrolled === drawn.value) return;
    scrolled = drawn.value;
    const [code, box] = [".code", ".nest"].map((part) => root.querySelector(part)!);
    const change = code!.querySelector(".added, .removed");
    const marked = box!.querySelector("[data-change] > .nest-bar");
    if (change) scrollWithin(code!, change, 60);
    else code!.scrollTop = 0;
    box!.scrollTop = 0;
    if (marked) scrollWithin(box!, marked);
  });
}

function tell({ index, changed, diff, words }: TraceStep): string {
  if (index === 0) return "The unscheduled program.";
  const start = `Step ${index} ${words}`;
  if (!changed) return `${start}. The program does not change.`;
  const { added, removed, shifted } = countChanges(markedLines(diff!));
  const moved = shifted ? `; ${counted(shifted, "line")} only re-indented` : "";
  return `${start}. ${counted(added, "line")} added, ${removed} removed${moved}.`;
}

/** The instruction of a step with its decision standing out. */
export function instructionText({ instruction }: TraceStep): TemplateResult {
  if (!instruction) return html`<span>the unscheduled program</span>`;
  const { text, decision, isSampling } = instruction;
  const mark = `decision=${decision}`;
  const at = isSampling && decision !== null ? text.lastIndexOf(mark) : -1;
  if (at < 0) return html`<code>${python(text)}</code>`;
  const rest = text.slice(at + mark.length);
  return html`<code>${python(text.slice(0, at))}<mark class="decision">${mark}</mark>${rest}</code>`;
}

function timeCell(effect: Effect | undefined, running: boolean): TemplateResult {
  if (running || !effect)
    return html`<span class="step-time">${running ? "measuring …" : ""}</span>`;
  const { state, seconds, factor, share, reason } = effect;
  return html`<span class="step-time" data-testid="trace-step-time" data-state=${state}
    data-seconds=${seconds ?? nothing} data-factor=${factor ?? nothing}
    ><span class="step-time-text" title=${reason ?? nothing}>${effectText(effect)}</span>
    <span class="step-time-bar" aria-hidden="true" ?hidden=${seconds === null}
      .style=${`--share: ${share}`}></span></span>`;
}
