/** What the trace view knows and does: the trace shown, its decisions, times, and one beside it. */

import { computed, effect, signal } from "@preact/signals-core";
import { message } from "../../errors";
import { Stopped } from "../../python/client";
import type { Changes, DerivedTrace, RunResult, StepOutcome, Titled } from "../../python/wire";
import { timing } from "../format";
import { Cache, Resource } from "../resource";
import type { ViewContext } from "../view";
import type { Compared, Side } from "./compare";
import { lookUp, type TraceReference, type TraceState } from "./state";
import { NO_TIMES, type Times } from "./steps";
import { comparedWith, StepTimer } from "./timing";

/** What is compared with where nothing is. */
export const NONE = "none";
/** The shown trace with the decisions that it was recorded with. */
export const RECORDED = "recorded";

const CHECKING = "checking its result and timing it …";

export interface Shown {
  trace: Titled;
  changes: Changes;
  derived: DerivedTrace;
}

/** What came of changing a decision. */
interface Outcome {
  text: string;
  state: "busy" | "good" | "bad" | "";
}

interface Progress {
  step: number | null;
  done: number;
  all: number;
}

export class TraceModel {
  readonly traces = signal<Titled[]>([]);
  readonly shown = new Resource<Shown>();
  /** The trace and the decisions that are asked for. */
  readonly asked = signal<{ id: string; changes: Changes } | null>(null);
  readonly step = signal(0);
  /** What stands beside the trace: NONE, RECORDED or the name of another trace. */
  readonly beside = signal(NONE);
  readonly compared = new Resource<Compared>();
  readonly outcome = signal<Outcome>({ text: "", state: "" });
  /** What timing came to, in words. */
  readonly said = signal("");
  /** Of a timing that goes on. */
  readonly progress = signal<Progress | null>(null);
  /** Why decisions cannot be, by `refusalKey`, as far as later steps were asked. */
  readonly refused = signal<ReadonlyMap<string, string>>(new Map());
  readonly times = computed(() => this.timesOf(this.shown.value));
  readonly isChanged = computed(
    () => this.shown.value?.derived.controls.some(({ changed }) => changed) ?? false,
  );
  readonly timer: StepTimer;
  private readonly measured = signal<ReadonlyMap<string, Times>>(new Map());
  private readonly derivations = new Cache<DerivedTrace>();
  /** Steps of traces that are none of the run, as links hold them. */
  private readonly foreign = new Map<string, unknown[]>();
  /** Steps whose decisions `lookAhead` has asked about. */
  private looked = new Set<number>();

  private document = "";

  constructor(private readonly context: ViewContext) {
    this.timer = new StepTimer(context.session);
    effect(() => {
      const [now, beside] = [this.shown.value, this.beside.value];
      if (now && beside !== NONE) void this.compare(now, beside);
      else this.compared.set(null);
    });
  }

  /** The traces of another run take the place of all that is known. */
  reset({ document, traces }: RunResult): void {
    this.document = document;
    this.derivations.clear();
    this.foreign.clear();
    this.measured.value = new Map();
    this.beside.value = NONE;
    this.said.value = "";
    this.asked.value = null;
    this.shown.set(null);
    this.traces.value = traces;
  }

  /** Add a trace that is none of the run. */
  add(trace: Titled): void {
    if (this.traces.peek().some(({ id }) => id === trace.id)) return;
    this.traces.value = [...this.traces.peek(), trace];
  }

  async show(trace: Titled, changes: Changes = {}, step?: number): Promise<void> {
    this.asked.value = { id: trace.id, changes };
    await this.shown.load(
      async () => ({ trace, changes, derived: await this.derive(trace.id, changes) }),
      (now) => this.take(now, step),
    );
  }

  /** Derive the program with other decisions, check what it computes, and time it. */
  async change(changes: Changes, step: number | null): Promise<void> {
    const before = this.shown.value;
    if (!before) return;
    const { trace } = before;
    this.asked.value = { id: trace.id, changes };
    this.say("Updating the program …", "busy");
    let refusal = "";
    const derive = async (): Promise<Shown> => {
      try {
        const derived = await this.derive(trace.id, changes);
        if (!derived.failure) return { trace, changes, derived };
        refusal = `Not possible: ${failureText(derived)}`;
      } catch (error) {
        refusal = error instanceof Stopped ? "Stopped." : message(error);
      }
      return before;
    };
    const answered = await this.shown.load(derive, (now) => {
      if (refusal) this.asked.value = null;
      else this.take(now, this.step.value >= lastStep(before) ? undefined : this.step.value);
      this.say(
        refusal || (step === null ? "The decisions are those recorded." : "Program updated."),
        refusal ? "bad" : "",
      );
    });
    if (answered && !refusal) await this.check(this.shown.value!);
  }

  /** Time every step that changes the program; the others have the time of the one before. */
  async timeEachStep(): Promise<void> {
    const now = this.shown.value;
    if (!now || this.context.busy.value) return;
    const changing = now.derived.steps.flatMap(({ index, changed }) => (changed ? [index] : []));
    await this.measure(changing, now);
    const times = [...this.timesOf(now).values()].map(({ seconds }) => seconds);
    const failed = times.filter((seconds) => seconds === null).length;
    if (!this.timer.stopped && times.length > 1)
      this.said.value = `${times.length - failed} programs timed${failed ? `, ${failed} without a time` : ""}`;
  }

  /** Ask of every value that seems possible whether the steps that follow can live with it. */
  async lookAhead(step: number): Promise<void> {
    const now = this.shown.value;
    if (!now || this.looked.has(step) || this.context.busy.value) return;
    this.looked.add(step);
    const control = now.derived.controls.find((each) => each.step === step)!;
    const decisions = new Map<string, unknown>();
    for (const { decision, reason } of control.parts.flatMap(({ options }) => options)) {
      if (reason === null && !same(decision, control.decision))
        decisions.set(refusalKey(step, decision), decision);
    }
    const { session } = this.context;
    for (const [key, decision] of decisions) {
      const reason = await session
        .look(null, "trace_view.refusal", now.trace.id, now.changes, step, decision)
        .catch(() => null);
      if (this.shown.value !== now) return;
      if (reason !== null) this.refused.value = new Map([...this.refused.value, [key, reason]]);
    }
  }

  /** Show what a link asked for. */
  async follow({ shown: first, step, second }: TraceState): Promise<void> {
    const trace = await this.refer(first);
    if (!trace) {
      // The program is another one by now.
      const last = this.traces.value.at(-1);
      if (last) await this.show(last);
      return;
    }
    const other = second && (await this.refer(second));
    this.beside.value = other ? (other === trace ? RECORDED : other.id) : NONE;
    await this.show(trace, first.changes, step);
  }

  /** What a link has to hold; null where nothing is shown. */
  get state(): TraceState | null {
    const now = this.shown.value;
    if (!now) return null;
    const state: TraceState = {
      shown: this.reference(now.trace, now.changes),
      step: this.step.value,
    };
    const other = this.otherOf(now, this.beside.value);
    if (other) state.second = this.reference(other, {});
    return state;
  }

  /** Have a link hold the steps themselves of a trace that is none of the run. */
  async keepSteps(trace: Titled): Promise<void> {
    const asked = this.context.session.call("trace_export.steps_json", trace.id, {});
    // Where they do not come, a link holds the trace's title alone.
    await asked.then((steps) => this.foreign.set(trace.id, steps)).catch(() => undefined);
  }

  private take(now: Shown, step = now.derived.steps.length - 1): void {
    this.asked.value = null;
    this.step.value = Math.max(0, step);
    this.looked = new Set();
    this.refused.value = new Map();
    const { trace, derived } = now;
    const recorded = this.beside.value === RECORDED && !this.isChanged.value;
    if (recorded || this.beside.value === trace.id) this.beside.value = NONE;
    this.say(failureText(derived), derived.failure ? "bad" : "");
  }

  private say(text: string, state: Outcome["state"] = ""): void {
    this.outcome.value = { text, state };
  }

  /** Check and time the program in the end, and say how it does. */
  private async check(now: Shown): Promise<void> {
    const last = lastStep(now);
    if (!this.timesOf(now).has(last)) {
      const wait = this.context.busy.value
        ? "it is checked and timed when what runs is done"
        : CHECKING;
      this.say(`Program updated; ${wait}`, "busy");
      await this.measure([last], now);
    }
    if (this.shown.value !== now) return;
    const outcome = this.timesOf(now).get(last);
    if (!outcome) {
      this.say("Program updated.");
      return;
    }
    const { seconds, reason } = outcome;
    if (seconds === null) {
      this.say(`Program updated, but ${reason}`, "bad");
      return;
    }
    const recorded =
      this.isChanged.value && this.timesOf({ ...now, changes: {} }).get(last)?.seconds;
    const unscheduled = this.timesOf(now).get(0)?.seconds;
    const parts = [
      `Same result as the unscheduled program; ${timing(seconds)}`,
      ...(unscheduled ? [comparedWith(seconds, unscheduled, "the unscheduled program")] : []),
      ...(recorded ? [comparedWith(seconds, recorded, "as recorded")] : []),
    ];
    this.say(`${parts.join(", ")}.`, "good");
  }

  /** Measure the program after these steps; what is measured already is not measured again. */
  private async measure(which: number[], now: Shown): Promise<void> {
    const { timer } = this;
    const missing = which.filter((step) => !this.timesOf(now).has(step) && step > 0);
    const all = missing.length + 1;
    let done = 0;
    const tell = (step: number, outcome: StepOutcome | null): void => {
      if (outcome && outcome.state !== "stopped") this.keep(now, step, outcome);
      if (outcome) done += 1;
      if (this.shown.value !== now) return;
      this.progress.value = { step: outcome ? null : step, done, all };
      this.said.value = `Timing step ${step}: ${done} of ${all} done`;
    };
    const work = async (): Promise<void> => {
      // While it waited, other decisions may have taken its place: those are timed in their turn.
      if (this.shown.value !== now) return;
      if (this.outcome.value.state === "busy") this.say(`Program updated; ${CHECKING}`, "busy");
      this.progress.value = { step: null, done, all };
      await timer.run(now.trace.id, now.changes, missing, tell);
    };
    try {
      await this.context.during(`Timing ${now.trace.title}`, () => timer.stop(), work);
      this.said.value = timer.stopped ? `Stopped: ${done} of ${all} steps timed` : "";
    } catch (error) {
      this.said.value = timer.stopped || error instanceof Stopped ? "Stopped." : message(error);
    } finally {
      this.progress.value = null;
    }
  }

  private keep(now: Shown, step: number, outcome: StepOutcome): void {
    const times = new Map([...this.timesOf(now), [step, outcome]]);
    this.measured.value = new Map([...this.measured.value, [keyOf(now), times]]);
  }

  private timesOf(shown: Pick<Shown, "trace" | "changes"> | null): Times {
    return (shown && this.measured.value.get(keyOf(shown))) ?? NO_TIMES;
  }

  private otherOf(now: Shown, beside: string): Titled | undefined {
    return beside === RECORDED ? now.trace : this.traces.value.find(({ id }) => id === beside);
  }

  private async compare(now: Shown, beside: string): Promise<void> {
    const other = this.otherOf(now, beside);
    if (!other) return;
    const { trace, changes, derived } = now;
    await this.compared.load(async () => {
      const [second, comparison] = await Promise.all([
        this.derive(other.id, {}),
        this.context.session.look(null, "trace_compare.compare", trace.id, changes, other.id, {}),
      ]);
      const title = this.isChanged.value ? `${trace.title}, changed` : trace.title;
      const sides: [Side, Side] = [
        { title, steps: derived.steps },
        { title: other === trace ? "as recorded" : other.title, steps: second.steps },
      ];
      return { sides, comparison };
    });
    if (!this.compared.error || this.compared.stopped) return;
    this.said.value = `The traces cannot be compared: ${this.compared.error}`;
    this.beside.value = NONE;
  }

  private derive(id: string, changes: Changes): Promise<DerivedTrace> {
    return this.derivations.get(keyOf({ trace: { id }, changes }), () =>
      this.context.session.look(null, "trace_view.derive", id, changes),
    );
  }

  private async refer(reference: TraceReference): Promise<Titled | undefined> {
    const { title, steps } = reference;
    if (!steps) return lookUp(this.traces.value, reference);
    try {
      const { session } = this.context;
      const trace = await session.call("trace_export.load", this.document, title, steps);
      this.foreign.set(trace.id, steps);
      this.add(trace);
      return trace;
    } catch (error) {
      this.context.toast(`The link's trace does not fit: ${message(error)}`);
      return undefined;
    }
  }

  private reference(trace: Titled, changes: Changes): TraceReference {
    const steps = this.foreign.get(trace.id);
    const index = this.traces.value.indexOf(trace);
    return { index, title: trace.title, changes, ...(steps ? { steps } : {}) };
  }
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function refusalKey(step: number, decision: unknown): string {
  return `${step}:${JSON.stringify(decision)}`;
}

function failureText({ failure, steps }: DerivedTrace): string {
  return failure
    ? `step ${failure.step} of ${steps.length} and more is refused: ${failure.message}`
    : "";
}

function lastStep({ derived }: Shown): number {
  return derived.steps.length - 1;
}

function keyOf({ trace, changes }: { trace: { id: string }; changes: Changes }): string {
  const sorted = Object.entries(changes).sort(([a], [b]) => Number(a) - Number(b));
  return `${trace.id} ${JSON.stringify(sorted)}`;
}
