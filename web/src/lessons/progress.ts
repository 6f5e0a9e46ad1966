/** How far the reader has come, kept by the browser where it lets us, else for this visit. */

import { load, store } from "../storage";

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
  return parsed(visit.get(lesson) ?? load(KEY + lesson));
}

/** What came of storing: whether the browser keeps it, and what another tab has made of cells. */
export interface Stored {
  kept: boolean;
  /** Texts of cells that only the other tab has changed. */
  theirs: Record<string, string>;
  /** The other tab's texts of cells that both have changed. */
  rivals: Record<string, string>;
}

/** The progress in an open lesson, which another tab may have open, too. */
export class LessonProgress {
  now: Progress;
  /** What was last read or stored, and its text. */
  private base: Progress;
  private text: string | null;

  constructor(private readonly lesson: string) {
    this.text = load(KEY + lesson);
    this.base = parsed(this.text);
    this.now = parsed(this.text);
  }

  /** Store it, with what another tab has stored since this one did. */
  store(): Stored {
    const key = KEY + this.lesson;
    const current = load(key);
    const stored = current === this.text ? this.base : parsed(current);
    const { progress, ...others } = merged(this.base, this.now, stored);
    const text = JSON.stringify(progress);
    const kept = store(key, text);
    if (kept) visit.delete(this.lesson);
    else visit.set(this.lesson, text);
    this.now = progress;
    this.text = kept ? text : current;
    this.base = kept ? parsed(text) : stored;
    return { kept, ...others };
  }
}

/** `ours` with what `theirs` has more, since both had come from `base`. */
function merged(
  base: Progress,
  ours: Progress,
  theirs: Progress,
): { progress: Progress } & Omit<Stored, "kept"> {
  const changed = Object.entries(theirs.edits).filter(
    ([cell, text]) => text !== base.edits[cell] && text !== ours.edits[cell],
  );
  const isOurs = ([cell]: [string, string]): boolean => ours.edits[cell] !== base.edits[cell];
  const taken = Object.fromEntries(changed.filter((each) => !isOurs(each)));
  return {
    progress: {
      ran: [...new Set([...ours.ran, ...theirs.ran])],
      passed: [...new Set([...ours.passed, ...theirs.passed])],
      edits: { ...ours.edits, ...taken },
    },
    theirs: taken,
    rivals: Object.fromEntries(changed.filter(isOurs)),
  };
}

/** The share of a lesson that is done: of its exercises, or of its cells where it has none. */
export function shareDone({ ran, passed }: Progress, cells: number, exercises: number): number {
  return exercises ? passed.length / exercises : cells ? ran.length / cells : 0;
}

/** What was stored, as far as it can be understood. */
function parsed(stored: string | null): Progress {
  const usable: Progress = { ran: [], passed: [], edits: {} };
  try {
    const value = JSON.parse(stored ?? "null") as Partial<Progress> | null;
    if (Array.isArray(value?.ran)) usable.ran = value.ran;
    if (Array.isArray(value?.passed)) usable.passed = value.passed;
    const edits = Object.entries(value?.edits ?? {}).filter(([, text]) => typeof text === "string");
    usable.edits = Object.fromEntries(edits);
  } catch {
    // Then nothing of it is.
  }
  return usable;
}
