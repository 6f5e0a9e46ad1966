/** What a list of trials amounts to. */

import type { TrialResult, TrialUpdate } from "../../python/wire";
import { counted } from "../format";
import { groupBy } from "../kit";

/** A trial with all that Python said of it. */
export interface Trial extends TrialResult {
  decisions: string[];
  space: number;
  /** Seconds from the search's begin to its arrival, pauses left out. */
  at: number;
}

/** A trial that has a time. */
export type Timed = Trial & { seconds: number };

export function timed(trials: readonly Trial[]): Timed[] {
  return trials.filter((trial): trial is Timed => trial.seconds !== null);
}

/**
 * The fastest trial, the first of them if several are equally fast. Where some are confirmed, it is
 * one of those: times taken beside other work are no verdict.
 */
export function bestOf(trials: readonly Trial[]): Timed | null {
  const confirmed = trials.filter((trial) => trial.confirmed);
  const [best = null] = byTime(timed(confirmed.length ? confirmed : trials));
  return best;
}

/** The fastest first, then those without a time. */
export function byTime<T extends Trial>(trials: readonly T[]): T[] {
  return trials.toSorted(
    (a, b) => (a.seconds ?? Infinity) - (b.seconds ?? Infinity) || a.index - b.index,
  );
}

/** Put a trial in its place by its index; it replaces what it says better, and keeps the rest. */
export function place(
  trials: Trial[],
  { record: _record, labels: _labels, decisions, space, ...update }: TrialUpdate,
  at: number,
): void {
  const position = trials.findLastIndex(({ index }) => index < update.index) + 1;
  const there = trials[position]?.index === update.index ? trials[position] : undefined;
  trials.splice(position, there ? 1 : 0, {
    ...update,
    decisions: decisions ?? there?.decisions ?? [],
    space: space ?? there?.space ?? 0,
    at: there?.at ?? at,
  });
}

/** Why trials failed, each reason once: how often, and in which trial first. */
export function failures(
  trials: readonly Trial[],
): { reason: string; count: number; first: number }[] {
  const failed = trials.filter(({ state }) => state === "failed");
  const groups = groupBy(failed, ({ reason }) => reason ?? "for no known reason");
  return [...groups]
    .map(([reason, group]) => ({ reason, count: group.length, first: group[0]!.index }))
    .sort((a, b) => b.count - a.count);
}

/** What a search of `tried` trials came to, in a sentence. */
export function outcome(tried: number, trials: readonly Trial[]): string {
  const count = (of: Trial["state"]): number => trials.filter(({ state }) => state === of).length;
  const whose = tried < trials.length ? "more" : "of them";
  const parts: [number, string][] = [
    [count("repeated"), "of them duplicates"],
    [count("failed"), "failed"],
    [count("recalled"), `${whose} from earlier searches`],
  ];
  const phrases = parts.filter(([number]) => number).map(([number, text]) => `${number} ${text}`);
  return [counted(tried, "trial"), ...phrases].join(", ");
}
