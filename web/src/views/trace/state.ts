/** What a link says of the trace view: which trace, which step, which decisions. Plain JSON. */

import type { Changes } from "../../python/wire";

/** A trace by its place among those of the run, or by its steps where it is no trace of the run. */
export interface TraceReference {
  index: number;
  title: string;
  changes: Changes;
  /** In TVM's layout, for a trace that a search sampled. */
  steps?: unknown[];
}

export interface TraceState {
  shown: TraceReference;
  step: number;
  /** The trace beside it. */
  second?: TraceReference;
}

/** The state in what a link holds; null where it is something else. */
export function readState(value: unknown): TraceState | null {
  if (!isObject(value) || !Number.isInteger(value.step)) return null;
  const [shown, second] = [reference(value.shown), reference(value.second)];
  return shown && { shown, step: value.step as number, ...(second ? { second } : {}) };
}

/** The trace that a reference means: the one at its place if it has the title, else one that has. */
export function lookUp<T extends { title: string }>(
  traces: T[],
  { index, title }: TraceReference,
): T | undefined {
  const there = traces[index];
  return there?.title === title ? there : traces.find((trace) => trace.title === title);
}

function reference(value: unknown): TraceReference | null {
  if (!isObject(value) || !isObject(value.changes)) return null;
  const { index, title, changes, steps } = value;
  const fits = Number.isInteger(index) && typeof title === "string";
  if (!fits || !Object.keys(changes as object).every((step) => /^\d+$/.test(step))) return null;
  const kept = Array.isArray(steps) ? { steps } : {};
  return { index: index as number, title, changes: changes as Changes, ...kept };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
