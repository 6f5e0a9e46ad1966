/** The lessons there are, and loading one of them. */

import type { LessonEntry, LessonText, Recording } from "./lesson";

const entries = import.meta.glob<LessonEntry>("../../lessons/*.md", {
  eager: true,
  import: "default",
  query: "?entry",
});
const texts = import.meta.glob<LessonText>("../../lessons/*.md", { import: "default" });
const recordings = import.meta.glob<Recording>("../../lessons/outputs/*.json", {
  import: "default",
});

const FOLDER = "../../lessons";

/** All lessons, in order. */
export const LESSONS: LessonEntry[] = Object.keys(entries)
  .sort()
  .map((path) => entries[path]!);

export interface LoadedLesson {
  lesson: LessonText;
  recording: Recording | null;
}

/** A lesson and its recorded outputs; null where there is none of this name. */
export async function loadLesson(id: string): Promise<LoadedLesson | null> {
  const text = texts[`${FOLDER}/${id}.md`];
  if (!text) return null;
  const recording = recordings[`${FOLDER}/outputs/${id}.json`];
  const [lesson, recorded] = await Promise.all([text(), recording?.() ?? null]);
  return { lesson, recording: recorded };
}
