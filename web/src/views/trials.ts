/** What a list of trials amounts to. */

import type { Trial } from "../protocol";

/** The fastest trial, the first of them if several are equally fast. */
export function bestOf(trials: Trial[]): Trial | null {
  let best: Trial | null = null;
  for (const trial of trials) {
    if (trial.seconds !== null && (best === null || trial.seconds < best.seconds!)) best = trial;
  }
  return best;
}

/** A sentence's worth of what a search came to. */
export function outcome(trials: Trial[]): string {
  const failed = trials.filter(({ state }) => state === "failed").length;
  const repeated = trials.filter(({ state }) => state === "repeated").length;
  const parts = [`${trials.length} ${trials.length === 1 ? "trial" : "trials"}`];
  if (repeated) parts.push(`${repeated} of them repeated earlier programs`);
  if (failed) parts.push(`${failed} failed`);
  return parts.join(", ");
}
