/** The best so far of a search, by trials and by time, to set searches beside each other. */

import type { Trial } from "./trials";

export type By = "trials" | "seconds";

/** A point at which the best so far got better. */
export interface Step {
  x: number;
  seconds: number;
}

/**
 * Where the best so far falls. By trials, x counts those that came before and itself; by seconds it
 * is the time since the search began. The last point is the end of the search.
 */
export function runningBest(trials: readonly Trial[], by: By): Step[] {
  const inOrder = [...trials].sort((a, b) => a.at - b.at || a.index - b.index);
  const steps: Step[] = [];
  let best = Infinity;
  let last = 0;
  for (const [count, { seconds, at }] of inOrder.entries()) {
    last = by === "trials" ? count + 1 : at;
    if (seconds === null || seconds >= best) continue;
    best = seconds;
    steps.push({ x: last, seconds });
  }
  if (steps.length && last > steps.at(-1)!.x) steps.push({ x: last, seconds: best });
  return steps;
}

/** The first x at which a curve is at `seconds` or below; null if it never is. */
export function reached(curve: readonly Step[], seconds: number): number | null {
  return curve.find((step) => step.seconds <= seconds)?.x ?? null;
}

/** The best so far at x; null before the first trial. */
export function bestAt(curve: readonly Step[], x: number): number | null {
  return curve.findLast((step) => step.x <= x)?.seconds ?? null;
}
