/** How well a cost model ranks: what it predicted against what was measured. */

import { groupBy } from "../kit";
import { type Timed, type Trial, timed } from "./trials";

/** Two times that differ by less than this share are the same. */
const TIE = 0.02;

/** A timed trial with the score that a model has predicted. */
export type Predicted = Timed & { predicted: number };

export interface Accuracy {
  /** The share of pairs in which the faster has the higher score; null without pairs. */
  share: number | null;
  pairs: number;
}

/** Trials that a model had predicted, and that were measured. */
export function predicted(trials: readonly Trial[]): Predicted[] {
  return timed(trials).filter((trial): trial is Predicted => trial.predicted !== null);
}

/**
 * Pairwise accuracy within each round, since a model learns between them; 0.5 is chance. Every
 * prediction was made before its measurement.
 */
export function accuracy(trials: readonly Predicted[]): Accuracy {
  let right = 0;
  let pairs = 0;
  for (const group of rounds(trials).values()) {
    for (let i = 0; i < group.length; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const [a, b] = [group[i]!, group[j]!];
        if (Math.abs(a.seconds - b.seconds) <= TIE * Math.max(a.seconds, b.seconds)) continue;
        pairs += 1;
        if (a.predicted === b.predicted) right += 0.5;
        else if (a.predicted > b.predicted === a.seconds < b.seconds) right += 1;
      }
    }
  }
  return { share: pairs ? right / pairs : null, pairs };
}

/** The trials of each round, in the order of rounds. */
export function rounds(trials: readonly Predicted[]): Map<number, Predicted[]> {
  const sorted = trials.toSorted((a, b) => a.round - b.round);
  return groupBy(sorted, ({ round }) => round);
}
