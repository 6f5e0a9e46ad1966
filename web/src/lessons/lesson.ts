/** What a lesson is, as `plugins/lessons.ts` makes it from Markdown. */

/** What is known of a lesson without loading it. */
export interface LessonEntry {
  /** The file's name without its ending; `#lesson=<id>` opens it. */
  id: string;
  title: string;
  chapter: number;
  summary: string;
  cells: number;
  exercises: string[];
}

export interface LessonText extends LessonEntry {
  parts: LessonPart[];
}

export type LessonPart =
  | { kind: "text"; html: string }
  | LessonCode
  /** Code that is shown only. */
  | { kind: "static"; code: string }
  | { kind: "hint"; html: string }
  | { kind: "solution"; exercise: string; source: string; code: string };

/** A cell to run. */
export interface LessonCode {
  kind: "cell";
  /** Its place among the cells, from 1. */
  number: number;
  source: string;
  /** The source as highlighted HTML, one element per line. */
  code: string;
  /** Whether its output differs from run to run. */
  varies: boolean;
  folded: boolean;
  /** What checks it, where it is an exercise. */
  exercise: string | null;
}

/** What the cells of a lesson printed when they were recorded. */
export interface Recording {
  /** The day, as YYYY-MM-DD. */
  date: string;
  browser: string;
  /** By the cells' numbers. */
  cells: Record<string, RecordedOutput>;
}

export interface RecordedOutput {
  /** Names the source that was run. */
  digest: string;
  text: string;
  modules: { title: string; source: string }[];
}
