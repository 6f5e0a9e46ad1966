/** What a list of trials amounts to. */

import type { Trial } from "../../python/protocol";

/**
 * The fastest trial, the first of them if several are equally fast. Where some are confirmed, it is
 * one of those: times taken beside other work are no verdict.
 */
export function bestOf(trials: Trial[]): Trial | null {
  const confirmed = trials.filter((trial) => trial.confirmed);
  let best: Trial | null = null;
  for (const trial of confirmed.length ? confirmed : trials) {
    if (trial.seconds !== null && (best === null || trial.seconds < best.seconds!)) best = trial;
  }
  return best;
}

/** Put a trial in its place by its index; it replaces what it says better. */
export function place(trials: Trial[], trial: Trial): void {
  let at = trials.length;
  while (at > 0 && trials[at - 1]!.index >= trial.index) at -= 1;
  trials.splice(at, trials[at]?.index === trial.index ? 1 : 0, trial);
}

/** How many trials were really run: those that did not take over what another came to. */
export function runs(trials: Trial[]): number {
  return trials.filter(({ sameAs }) => sameAs === null).length;
}

/** Why trials failed, each reason once: how often, and in which trial first. */
export function failures(trials: Trial[]): { reason: string; count: number; first: number }[] {
  const found = new Map<string, { reason: string; count: number; first: number }>();
  for (const { state, reason, index } of trials) {
    if (state !== "failed") continue;
    const text = reason ?? "for no known reason";
    const known = found.get(text);
    if (known) known.count += 1;
    else found.set(text, { reason: text, count: 1, first: index });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
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
