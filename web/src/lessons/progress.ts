/** How far the reader has come, kept by the browser where it lets us, else for this visit. */

import { recall, remember } from "../storage";

export interface Progress {
  /** Numbers of cells that were run through. */
  ran: number[];
  /** Exercises that were solved. */
  passed: string[];
  /** What the reader has made of cells, by their numbers. */
  edits: Record<string, string>;
}

const KEY = "lesson.";
/** What the browser does not keep. */
const visit = new Map<string, string>();

export function progressOf(lesson: string): Progress {
  return {
    ran: [],
    passed: [],
    edits: {},
    ...parsed(recall(KEY + lesson) ?? visit.get(lesson) ?? null),
  };
}

export function keepProgress(lesson: string, progress: Progress): void {
  const text = JSON.stringify(progress);
  remember(KEY + lesson, text);
  if (recall(KEY + lesson) === null) visit.set(lesson, text);
}

/** The share of a lesson that is done: of its exercises, or of its cells where it has none. */
export function shareDone({ ran, passed }: Progress, cells: number, exercises: number): number {
  return exercises ? passed.length / exercises : cells ? ran.length / cells : 0;
}

/** What was stored, as far as it can be understood. */
function parsed(stored: string | null): Partial<Progress> {
  if (!stored) return {};
  try {
    const value = JSON.parse(stored) as Partial<Progress> | null;
    const usable: Partial<Progress> = {};
    if (Array.isArray(value?.ran)) usable.ran = value.ran;
    if (Array.isArray(value?.passed)) usable.passed = value.passed;
    if (value?.edits && typeof value.edits === "object") usable.edits = value.edits;
    return usable;
  } catch {
    return {};
  }
}
