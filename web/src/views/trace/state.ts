/** What a link says of the trace view: which trace, which step, which decisions. Plain JSON. */

import type { Changes } from "../../python/protocol";

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
export function readState(found: unknown): TraceState | null {
  if (!isObject(found) || !isReference(found.shown) || !Number.isInteger(found.step)) return null;
  const state: TraceState = { shown: reference(found.shown), step: found.step as number };
  if (isReference(found.second)) state.second = reference(found.second);
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

function isReference(found: unknown): found is TraceReference {
  return (
    isObject(found) &&
    Number.isInteger(found.index) &&
    typeof found.title === "string" &&
    isObject(found.changes) &&
    Object.keys(found.changes).every((step) => /^\d+$/.test(step))
  );
}

function isObject(found: unknown): found is Record<string, unknown> {
  return typeof found === "object" && found !== null && !Array.isArray(found);
}
