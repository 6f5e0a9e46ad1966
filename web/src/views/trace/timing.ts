/** How long the program takes after each step of a trace, and what each step does to that time. */

import type { PythonSession } from "../../python/client";
import type { Changes, StepOutcome, TraceStep } from "../../python/wire";
import { timing } from "../format";

/** What a step does to the time that the program takes. */
export interface Effect extends StepOutcome {
  /** How many times faster than the program at the step before that was timed. */
  factor: number | null;
  /** Its share of the longest time. */
  share: number;
}

/** The effects of steps, from their times. */
export function effects(
  steps: readonly TraceStep[],
  outcomes: ReadonlyMap<number, StepOutcome>,
): Map<number, Effect> {
  const longest = Math.max(...[...outcomes.values()].map(({ seconds }) => seconds ?? 0));
  const byStep = new Map<number, Effect>();
  let before: number | null = null;
  for (const { index } of steps) {
    const outcome = outcomes.get(index);
    if (!outcome || outcome.state === "stopped") continue;
    const { seconds } = outcome;
    const factor = seconds !== null && before !== null ? before / seconds : null;
    byStep.set(index, { ...outcome, factor, share: seconds === null ? 0 : seconds / longest });
    before = seconds ?? before;
  }
  return byStep;
}

/** "84 µs, ×3.2". */
export function effectText({ seconds, factor, reason }: Effect): string {
  if (seconds === null) return `no time: ${reason}`;
  return factor === null ? timing(seconds) : `${timing(seconds)} ×${factorText(factor)}`;
}

/** The same as a sentence. */
export function effectSentence({ seconds, factor, reason }: Effect): string {
  if (seconds === null) return `It has no time: ${reason}.`;
  return factor === null
    ? `It takes ${timing(seconds)}.`
    : `It takes ${timing(seconds)}: ${comparedWith(seconds, seconds * factor, "the previous timed step")}.`;
}

/** "3.20× faster than …". */
export function comparedWith(seconds: number, reference: number, what: string): string {
  const ratio = reference / seconds;
  if (Math.abs(ratio - 1) < 0.03) return `as fast as ${what}`;
  return `${factorText(Math.max(ratio, 1 / ratio))}× ${ratio > 1 ? "faster" : "slower"} than ${what}`;
}

/** A factor with as many digits as measuring can tell. */
export function factorText(factor: number): string {
  return factor.toFixed(factor >= 100 ? 0 : factor >= 10 ? 1 : 2);
}

/** Measures the programs of one trace, one after another, until it is stopped. */
export class StepTimer {
  /** Whether the last run was stopped. */
  stopped = false;
  private running = 0;

  constructor(private readonly session: PythonSession) {}

  /**
   * Time the unscheduled program and those after `steps`. `tell` hears of each step that is
   * begun, with null, and of its outcome.
   */
  async run(
    traceId: string,
    changes: Changes,
    steps: number[],
    tell: (step: number, outcome: StepOutcome | null) => void,
  ): Promise<void> {
    this.stopped = false;
    this.running += 1;
    let timingId: string | null = null;
    try {
      tell(0, null);
      const begun = await this.session.call("trace_timing.begin", traceId, changes);
      timingId = begun.id;
      tell(0, begun.outcome);
      for (const step of steps) {
        if (this.stopped) return;
        tell(step, null);
        tell(step, await this.session.call("trace_timing.step", timingId, traceId, changes, step));
      }
    } finally {
      this.running += 1;
      if (timingId && this.session.state === "ready")
        this.session.call("trace_timing.finish", timingId).catch(() => undefined);
    }
  }

  /** End it: what is measured now comes to nothing. */
  stop(): void {
    if (this.stopped) void this.session.stop();
    this.stopped = true;
    const halted = this.running;
    // A kernel without a WebAssembly form runs in Python itself, which only its end stops.
    this.session.stopTrials(() => this.running !== halted);
  }
}
