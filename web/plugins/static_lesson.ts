/** A lesson as plain HTML that is useful without any script: text, code and recorded output. */

import type { LessonText, Recording } from "../src/lessons/lesson";
import { escaped, highlighted } from "./lesson_markdown";

/** What `lessons/<id>.json` beside the page holds, for pages that embed the lesson. */
export interface StaticLesson {
  id: string;
  title: string;
  chapter: number;
  summary: string;
  html: string;
}

export function staticLesson(lesson: LessonText, recording: Recording | null): StaticLesson {
  const { id, title, chapter, summary } = lesson;
  const body = lesson.parts.map((part) => staticPart(part, recording));
  const html = `<article class="mlc-lesson"><h2>${escaped(title)}</h2>\n${body.join("\n")}</article>`;
  return { id, title, chapter, summary, html };
}

function staticPart(part: LessonText["parts"][number], recording: Recording | null): string {
  switch (part.kind) {
    case "text":
      return part.html;
    case "static":
      return code(part.code);
    case "hint":
      return `<details><summary>Hint</summary>${part.html}</details>`;
    case "solution":
      return `<details><summary>Solution</summary>${code(part.code)}</details>`;
    case "cell":
      return code(part.code) + output(recording, part.number);
  }
}

function code(highlightedCode: string): string {
  return `<pre class="mlc-code"><code>${highlightedCode}</code></pre>`;
}

function output(recording: Recording | null, number: number): string {
  const recorded = recording?.cells[String(number)];
  if (!recording || !recorded || (!recorded.text && !recorded.modules.length)) return "";
  const text = recorded.text ? `<pre>${escaped(recorded.text)}</pre>` : "";
  const modules = recorded.modules.map(
    ({ title, source }) =>
      `<details><summary>${escaped(title)}</summary>${code(highlighted(source))}</details>`,
  );
  const when = `recorded on ${recording.date}, ${recording.browser}`;
  return `<figure class="mlc-output">${text}${modules.join("")}<figcaption>${escaped(when)}</figcaption></figure>`;
}
