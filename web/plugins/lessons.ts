/**
 * Lessons for the page's build: `lessons/<id>.md` imports as a lesson, with `?entry` as what the list
 * of lessons needs, and becomes `lessons/<id>.json` beside the page for those who embed it.
 */

import type { Plugin } from "vite";
import type { Recording } from "../src/lessons/lesson";
import { entryOf, parseLesson } from "./lesson_markdown";
import { staticLesson } from "./static_lesson";

const LESSON = /\/lessons\/([^/?]+)\.md(\?entry)?$/;
const RECORDING = /\/lessons\/outputs\/([^/?]+)\.json$/;

export function lessons(): Plugin {
  const texts = new Map<string, string>();
  const recordings = new Map<string, Recording>();
  return {
    name: "lessons",
    enforce: "pre",
    transform(source, path) {
      const recording = RECORDING.exec(path);
      if (recording) recordings.set(recording[1]!, JSON.parse(source) as Recording);
      const found = LESSON.exec(path);
      if (!found) return null;
      const [, id, entry] = found;
      texts.set(id!, source);
      const lesson = parseLesson(id!, source);
      return {
        code: `export default ${JSON.stringify(entry ? entryOf(lesson) : lesson)};`,
        map: null,
      };
    },
    generateBundle() {
      for (const [id, text] of texts) {
        const lesson = staticLesson(parseLesson(id, text), recordings.get(id) ?? null);
        this.emitFile({
          type: "asset",
          fileName: `lessons/${id}.json`,
          source: JSON.stringify(lesson),
        });
      }
    },
  };
}
