/** Output of which only the latest part is kept, and what to say of the rest. */

import type { Dropped, OutputChunk } from "./messages";
import { pixelsOf } from "./png";

/** What a picture and a page of HTML, which is a frame, count for at least, in characters. A picture
 * counts for a hundredth of its data or a thousandth of its pixels, a page for a tenth of its text. */
const PICTURE = 1000;
const PAGE = 5000;
/** Characters more that may go to begin with a whole line. */
const SEARCHED = 2000;

export class BoundedOutput {
  chunks: OutputChunk[] = [];
  /** Characters. */
  size = 0;

  /** From two times `capacity` on, the oldest goes until that much is left. */
  constructor(private readonly capacity: number) {}

  add(chunk: OutputChunk): void {
    const { stream, text, dropped } = chunk;
    const rich = isRich(chunk);
    const tail = this.chunks.at(-1);
    if (tail?.stream === stream && !isRich(tail) && !rich && !dropped) {
      this.size -= tail.text.length;
      tail.text = continued(tail.text, text);
      this.size += tail.text.length;
    } else if (text || rich || dropped) {
      this.chunks.push({ ...chunk, text: continued("", text) });
      this.size += sizeOf(this.chunks.at(-1)!);
    }
    if (this.size > 2 * this.capacity) this.trim();
  }

  /** Everything that is kept, which is no longer kept then. */
  take(): OutputChunk[] {
    const { chunks } = this;
    this.chunks = [];
    this.size = 0;
    return chunks;
  }

  private trim(): void {
    let excess = this.size - this.capacity;
    const dropped = { lines: 0, characters: 0 };
    while (this.chunks.length > 1 && excess >= sizeOf(this.chunks[0]!)) {
      const chunk = this.chunks.shift()!;
      excess -= sizeOf(chunk);
      addTo(dropped, countOf(chunk));
      addTo(dropped, chunk.dropped);
    }
    const first = this.chunks[0]!;
    if (isRich(first)) {
      // It cannot be cut: it goes as a whole.
      if (excess > 0) {
        addTo(dropped, countOf(first));
        delete first.picture;
        delete first.html;
      }
    } else {
      const newline = first.text.indexOf("\n", Math.max(0, excess - 1));
      const cut = newline >= 0 && newline < excess + SEARCHED ? newline + 1 : excess;
      addTo(dropped, countOf({ ...first, text: first.text.slice(0, cut) }));
      first.text = first.text.slice(cut);
    }
    addTo(dropped, first.dropped);
    first.dropped = dropped;
    this.size = sizeOfAll(this.chunks);
  }
}

/** Characters. */
export function sizeOfAll(chunks: OutputChunk[]): number {
  return chunks.reduce((sum, chunk) => sum + sizeOf(chunk), 0);
}

/** How many of these are pages of HTML. */
export function pagesOf(chunks: OutputChunk[]): number {
  return chunks.filter(({ html }) => html !== undefined).length;
}

function sizeOf({ text, picture, html }: OutputChunk): number {
  if (picture) {
    const pixels = pixelsOf(picture.url) ?? 0;
    return Math.max(PICTURE, Math.ceil(picture.url.length / 100), Math.ceil(pixels / 1000));
  }
  return html === undefined ? text.length : Math.max(PAGE, Math.ceil(html.length / 10));
}

/** Whether it is something else than text. */
function isRich({ picture, html }: OutputChunk): boolean {
  return picture !== undefined || html !== undefined;
}

/** A text and what is written behind it, where a carriage return begins the line again, as on a
 * terminal. One stays in front, for the line that may stand before this text. */
export function continued(text: string, more: string): string {
  if (!more.includes("\r") && !text.endsWith("\r")) return text + more;
  const start = text.lastIndexOf("\n") + 1;
  const lines = (text.slice(start) + more).split("\n").map((line) => {
    const end = line.endsWith("\r") ? line.length - 1 : line.length;
    const at = end > 0 ? line.lastIndexOf("\r", end - 1) : -1;
    return at < 0 ? line : line.slice(at);
  });
  return text.slice(0, start) + lines.join("\n");
}

/** A text without the marks that lines began again. */
export function displayed(text: string): string {
  return text.includes("\r") ? text.replaceAll("\r", "") : text;
}

/** Characters of a part of a text that goes as a whole when there is too much. */
const PART = 10_000;

/** A text in parts, at ends of lines where there are any. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; start += parts.at(-1)!.length) {
    const limit = start + PART;
    const newline = limit < text.length ? text.lastIndexOf("\n", limit - 1) : -1;
    parts.push(text.slice(start, newline >= start ? newline + 1 : limit));
  }
  return parts;
}

/** What is lost with a chunk. */
export function countOf(chunk: OutputChunk): Dropped {
  const { text, picture, html } = chunk;
  const characters = sizeOf(chunk);
  if (picture) return { lines: 0, characters, pictures: 1 };
  if (html !== undefined) return { lines: 0, characters, pages: 1 };
  return { lines: countLines(text), characters };
}

export function addTo(sum: Dropped, more: Dropped | undefined): void {
  if (!more) return;
  sum.lines += more.lines;
  sum.characters += more.characters;
  if (more.pictures) sum.pictures = (sum.pictures ?? 0) + more.pictures;
  if (more.pages) sum.pages = (sum.pages ?? 0) + more.pages;
}

/** A sentence for the reader; empty where nothing was dropped. */
export function describeDropped({ lines, characters, pictures = 0, pages = 0 }: Dropped): string {
  const counts: [number, string, string][] = [
    [lines, "line", "lines"],
    [pictures, "picture", "pictures"],
    [pages, "page of HTML", "pages of HTML"],
  ];
  if (!lines && !pictures && !pages) counts.push([characters, "character", "characters"]);
  const [first, ...rest] = counts
    .filter(([count]) => count)
    .map(([count, one, many]) => [count.toLocaleString("en"), count === 1 ? one : many]);
  if (!first) return "";
  const texts = [first.join(" earlier "), ...rest.map((each) => each.join(" "))];
  const last = texts.pop();
  if (!texts.length) return `… ${last} ${first[0] === "1" ? "was" : "were"} dropped`;
  return `… ${texts.join(", ")} and ${last} were dropped`;
}

function countLines(text: string): number {
  let count = 0;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) count += 1;
  return count;
}
