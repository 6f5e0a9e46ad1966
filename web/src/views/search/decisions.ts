/** Decisions as numbers on axes, and what each choice came to. */

import { groupBy, range } from "../kit";
import { type Timed, type Trial, timed } from "./trials";

export interface Axis {
  /** The name of a number that is decided, such as "j_1" for a factor of a tiling. */
  label: string;
  /** All values met, in rising order. */
  values: number[];
}

export interface DecidedTrial {
  trial: Timed;
  /** One number for each axis. */
  values: number[];
}

export interface DecisionTable {
  axes: Axis[];
  rows: DecidedTrial[];
}

/** What one value of an axis came to, in seconds. */
export interface Choice {
  value: number;
  trials: number;
  best: number;
  median: number;
}

/** The numbers of a decision as Python writes it: "[4, 32]", "3"; empty where it is something else. */
export function numbersOf(decision: string): number[] {
  try {
    const parsed: unknown = JSON.parse(decision);
    const list = Array.isArray(parsed) ? parsed : [parsed];
    return list.every((value) => typeof value === "number") ? (list as number[]) : [];
  } catch {
    return [];
  }
}

/** The design spaces that trials come from, the one with most trials first. */
export function spacesOf(trials: readonly Trial[]): { space: number; trials: number }[] {
  return [...groupBy(timed(trials), ({ space }) => space)]
    .map(([space, { length }]) => ({ space, trials: length }))
    .sort((a, b) => b.trials - a.trials);
}

/** The timed trials of a design space with an axis for each number that they decide. */
export function decisionTable(
  trials: readonly Trial[],
  space: number,
  labels: string[][],
): DecisionTable {
  const decided = timed(trials)
    .filter((trial) => trial.space === space)
    .map((trial) => ({ trial, numbers: trial.decisions.map(numbersOf) }));
  const partsOf = (numbers: number[][]): number[] => numbers.map(({ length }) => length);
  const parts = partsOf(decided[0]?.numbers ?? []);
  // Decisions of another form have no place on these axes.
  const rows = decided
    .filter(({ numbers }) => parts.length && `${partsOf(numbers)}` === `${parts}`)
    .map(({ trial, numbers }) => ({ trial, values: numbers.flat() }));
  const names = parts.flatMap((count, decision) =>
    range(count).map((part) => labels[decision]?.[part] ?? `decision ${decision + 1}_${part}`),
  );
  const axes = names.map((label, axis) => ({
    label,
    values: [...new Set(rows.map(({ values }) => values[axis]!))].sort((a, b) => a - b),
  }));
  return { axes, rows };
}

/** What each value of an axis came to. */
export function choices({ axes, rows }: DecisionTable, axis: number): Choice[] {
  return axes[axis]!.values.map((value) => {
    const seconds = rows
      .filter(({ values }) => values[axis] === value)
      .map(({ trial }) => trial.seconds)
      .sort((a, b) => a - b);
    return { value, trials: seconds.length, best: seconds[0]!, median: median(seconds) };
  });
}

/** The median of numbers in rising order. */
export function median(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
