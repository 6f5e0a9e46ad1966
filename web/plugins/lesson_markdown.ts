/**
 * Lessons from Markdown: text becomes HTML, and fences become cells, hints and solutions.
 *
 * `scripts/lesson_source.py` says what the words behind a fence mean; both read the same files.
 */

import { pythonLanguage } from "@codemirror/lang-python";
import { classHighlighter, highlightCode } from "@lezer/highlight";
import MarkdownIt from "markdown-it";
import type { LessonEntry, LessonPart, LessonText } from "../src/lessons/lesson";

const FRONT = /^---\n([\s\S]*?)\n---\n/;

const markdown = new MarkdownIt({ html: false, typographer: false });
markdown.renderer.rules.heading_open = (tokens, index) => `<${lower(tokens[index]!.tag)}>`;
markdown.renderer.rules.heading_close = (tokens, index) => `</${lower(tokens[index]!.tag)}>`;
markdown.renderer.rules.table_open = () =>
  '<div class="lesson-table" tabindex="0" role="region" aria-label="Table"><table>';
markdown.renderer.rules.table_close = () => "</table></div>";

/** The page has a heading of its own above, and the lesson's title is one too. */
function lower(tag: string): string {
  return `h${Number(tag.slice(1)) + 1}`;
}

/** The lesson in a file named `<id>.md`. Throws where a fence or the front matter is not understood. */
export function parseLesson(id: string, text: string): LessonText {
  const front = FRONT.exec(text);
  if (!front) throw new Error(`${id}: a lesson begins with its title between lines of ---`);
  const parts = [...partsOf(id, text.slice(front[0].length))];
  const cells = parts.filter((part) => part.kind === "cell");
  return {
    id,
    title: field(id, front[1]!, "title"),
    chapter: chapterOf(id, field(id, front[1]!, "chapter")),
    summary: field(id, front[1]!, "summary"),
    cells: cells.length,
    exercises: cells.flatMap(({ exercise }) => exercise ?? []),
    parts,
  };
}

/** The lesson without its parts. */
export function entryOf({ parts: _, ...entry }: LessonText): LessonEntry {
  return entry;
}

function field(id: string, front: string, name: string): string {
  const found = new RegExp(`^${name}: *(.*)$`, "m").exec(front)?.[1];
  if (!found) throw new Error(`${id}: the lesson has no ${name}`);
  return found.replace(/^"(.*)"$/, "$1");
}

function chapterOf(id: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`${id}: the chapter is a number, not "${text}"`);
  return Number(text);
}

function* partsOf(id: string, text: string): Generator<LessonPart> {
  const env = {};
  let pending: ReturnType<typeof markdown.parse> = [];
  let cells = 0;
  const flush = function* (): Generator<LessonPart> {
    if (pending.length)
      yield { kind: "text", html: markdown.renderer.render(pending, markdown.options, env) };
    pending = [];
  };
  for (const token of markdown.parse(text, env)) {
    if (token.type !== "fence" || token.level > 0) {
      pending.push(token);
      continue;
    }
    yield* flush();
    const [language, ...words] = token.info.trim().split(/\s+/);
    const names = new Map(words.map((word) => word.split("=") as [string, string | undefined]));
    if (language === "hint") yield { kind: "hint", html: markdown.render(token.content) };
    else if (language !== "python")
      throw new Error(`${id}: a fence of kind "${token.info}" is not known`);
    else if (names.has("static")) yield { kind: "static", code: highlighted(token.content) };
    else if (names.has("solution")) {
      const exercise = names.get("solution")!;
      yield {
        kind: "solution",
        exercise,
        source: trimmed(token.content),
        code: highlighted(token.content),
      };
    } else {
      cells += 1;
      yield {
        kind: "cell",
        number: cells,
        source: trimmed(token.content),
        code: highlighted(token.content),
        varies: names.has("varies"),
        folded: names.has("folded"),
        exercise: names.get("exercise") ?? null,
      };
    }
  }
  yield* flush();
}

/** An editor would show an empty line after a last line that ends. */
function trimmed(source: string): string {
  return source.replace(/\n$/, "");
}

/** Python as HTML, one `span.line` for each line, with the classes that the editor uses. */
export function highlighted(source: string): string {
  const text = trimmed(source);
  let html = '<span class="line">';
  highlightCode(
    text,
    pythonLanguage.parser.parse(text),
    classHighlighter,
    (code, classes) =>
      (html += classes ? `<span class="${classes}">${escaped(code)}</span>` : escaped(code)),
    () => (html += '</span>\n<span class="line">'),
  );
  return `${html}</span>`;
}

export function escaped(text: string): string {
  return text
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}
