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
  if (!isObject(value) || !isReference(value.shown) || !Number.isInteger(value.step)) return null;
  const state: TraceState = { shown: reference(value.shown), step: value.step as number };
  if (isReference(value.second)) state.second = reference(value.second);
  return state;
}

/** The trace that a reference means: the one at its place if it has the title, else one that has. */
export function lookUp<T extends { title: string }>(
  traces: T[],
  { index, title }: TraceReference,
): T | undefined {
  const there = traces[index];
  return there?.title === title ? there : traces.find((trace) => trace.title === title);
}

function reference({ index, title, changes, steps }: TraceReference): TraceReference {
  return { index, title, changes, ...(Array.isArray(steps) ? { steps } : {}) };
}

function isReference(value: unknown): value is TraceReference {
  return (
    isObject(value) &&
    Number.isInteger(value.index) &&
    typeof value.title === "string" &&
    isObject(value.changes) &&
    Object.keys(value.changes).every((step) => /^\d+$/.test(step))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
