/** How well a cost model ranks: what it predicted against what was measured. */

import { groupBy } from "../kit";
import type { Trial } from "./trials";

/** Two times that differ by less than this share are the same. */
const TIE = 0.02;

export interface PredictedTrial<T extends Trial = Trial> {
  trial: T;
  score: number;
  seconds: number;
}

export interface Accuracy {
  /** The share of pairs in which the faster has the higher score; null without pairs. */
  share: number | null;
  pairs: number;
}

/** Trials that a model had predicted, and that were measured. */
export function predicted<T extends Trial>(trials: readonly T[]): PredictedTrial<T>[] {
  return trials.flatMap((trial) =>
    trial.predicted === null || trial.seconds === null
      ? []
      : [{ trial, score: trial.predicted, seconds: trial.seconds }],
  );
}

/**
 * Pairwise accuracy within each round, since a model learns between them; 0.5 is chance. Every
 * prediction was made before its measurement.
 */
export function accuracy(trials: readonly PredictedTrial[]): Accuracy {
  let right = 0;
  let pairs = 0;
  for (const group of rounds(trials).values()) {
    for (let i = 0; i < group.length; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const [a, b] = [group[i]!, group[j]!];
        if (Math.abs(a.seconds - b.seconds) <= TIE * Math.max(a.seconds, b.seconds)) continue;
        pairs += 1;
        if (a.score === b.score) right += 0.5;
        else if (a.score > b.score === a.seconds < b.seconds) right += 1;
      }
    }
  }
  return { share: pairs ? right / pairs : null, pairs };
}

/** The predicted trials of each round, in the order of rounds. */
export function rounds<T extends Trial>(
  trials: readonly PredictedTrial<T>[],
): Map<number, PredictedTrial<T>[]> {
  const sorted = [...trials].sort((a, b) => a.trial.round - b.trial.round);
  return groupBy(sorted, ({ trial }) => trial.round);
}
