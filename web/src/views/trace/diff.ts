/** A program with what a step changed in it; parts that stayed as they are fold away. */

import { html, type TemplateResult } from "lit-html";
import { commonLines } from "../../common_lines";
import { highlightedLines } from "../../highlight";

/** A line that is "shifted" stays but for its indentation: a loop more or less is around it. */
export type LineKind = "same" | "added" | "removed" | "shifted";

export interface MarkedLine {
  kind: LineKind;
  text: string;
}

/** A run of lines that are shown, or that are folded away. */
export interface Run {
  folded: boolean;
  lines: MarkedLine[];
}

/** Unchanged lines that stay in sight around a change. */
const CONTEXT = 3;
/** Fewer unchanged lines are not worth folding. */
const MIN_FOLD = 4;

const KINDS: Record<string, LineKind> = { " ": "same", "+": "added", "-": "removed" };

/** Lines of a diff that has "-", "+" or a blank before each. */
export function markedLines(diff: string): MarkedLine[] {
  const parts: MarkedLine[] = [];
  let changed: MarkedLine[] = [];
  for (const line of diff.split("\n")) {
    const marked: MarkedLine = { kind: KINDS[line[0] ?? " "] ?? "same", text: line.slice(1) };
    if (marked.kind !== "same") {
      changed.push(marked);
      continue;
    }
    parts.push(...withoutShifts(changed), marked);
    changed = [];
  }
  return [...parts, ...withoutShifts(changed)];
}

/** Changed lines in a row, with those shifted that come back with another indentation. */
function withoutShifts(changed: MarkedLine[]): MarkedLine[] {
  const texts = (of: LineKind): string[] =>
    changed.filter(({ kind }) => kind === of).map(({ text }) => text);
  return aligned(texts("removed"), texts("added"), "shifted", (line) => line.trim());
}

/** Two texts as one; lines whose `key` both have are of a kind, and stand as they are in the second. */
export function aligned(
  before: string[],
  after: string[],
  shared: LineKind,
  key = (line: string) => line,
): MarkedLine[] {
  const lines: MarkedLine[] = [];
  const add = (kind: LineKind, texts: string[]): unknown =>
    lines.push(...texts.map((text) => ({ kind, text })));
  let [from, to] = [0, 0];
  for (const [i, j] of commonLines(before.map(key), after.map(key))) {
    add("removed", before.slice(from, i));
    add("added", after.slice(to, j));
    add(shared, [after[j]!]);
    [from, to] = [i + 1, j + 1];
  }
  add("removed", before.slice(from));
  add("added", after.slice(to));
  return lines;
}

/** The lines without those that were removed, and without marks. */
export function settled(lines: MarkedLine[]): MarkedLine[] {
  return lines.filter(({ kind }) => kind !== "removed").map(({ text }) => ({ kind: "same", text }));
}

export function countChanges(lines: MarkedLine[]): {
  added: number;
  removed: number;
  shifted: number;
} {
  const count = (of: LineKind): number => lines.filter(({ kind }) => kind === of).length;
  return { added: count("added"), removed: count("removed"), shifted: count("shifted") };
}

/** Runs of lines: folded are those that are far from any change, if there is one at all. */
export function runs(lines: MarkedLine[]): Run[] {
  const near = new Array<boolean>(lines.length).fill(false);
  for (const [at, { kind }] of lines.entries())
    if (kind === "added" || kind === "removed")
      near.fill(true, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  if (!near.includes(true)) return [{ folded: false, lines }];
  const parts: Run[] = [];
  for (let from = 0; from < lines.length; ) {
    const next = near.indexOf(!near[from], from);
    const run = lines.slice(from, next < 0 ? undefined : next);
    const folded = !near[from] && run.length >= MIN_FOLD;
    const last = parts.at(-1);
    if (last && !last.folded && !folded) last.lines.push(...run);
    else parts.push({ folded, lines: run });
    from += run.length;
  }
  return parts;
}

/** The lines as a listing, in which folded lines show when the reader asks for them. */
export function diffListing(lines: MarkedLine[]): TemplateResult {
  // Each side is highlighted as a whole: a line alone may be half of something.
  const side = (other: LineKind): DocumentFragment[] => {
    const shown = lines.filter(({ kind }) => kind !== other);
    return highlightedLines(shown.map(({ text }) => text).join("\n"));
  };
  const [now, before] = [side("removed"), side("added")];
  const row = ({ kind }: MarkedLine): TemplateResult => {
    const old = kind === "added" ? undefined : before.shift();
    return kind === "removed"
      ? html`<del class="line removed">${old}</del>\n`
      : html`<span class="line ${kind}">${now.shift()}</span>\n`;
  };
  return html`<code class="listing diff">${runs(lines).map((run) => {
    const rows = run.lines.map(row);
    return run.folded ? fold(run.lines, rows) : rows;
  })}</code>`;
}

function fold(lines: MarkedLine[], rows: TemplateResult[]): TemplateResult {
  const shifted = lines.some(({ kind }) => kind === "shifted");
  const what = `${lines.length} ${shifted ? "lines only re-indented" : "unchanged lines"}`;
  return html`<details class="fold-box"><summary class="fold">${what}</summary>${rows}</details>`;
}
