/** Two runs beside each other: how long they took, and what differs in code and output. */

import { commonLines } from "../common_lines";
import type { MarkedLine } from "../views/trace/diff";
import type { RunRecord } from "./record";

/** The lines of two texts, with those marked that only one of them has. */
export function lineDiff(before: string, after: string): MarkedLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const marked = (kind: MarkedLine["kind"], lines: string[]): MarkedLine[] =>
    lines.map((text) => ({ kind, text }));
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  let tail = 0;
  while (
    tail < Math.min(old.length, now.length) - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail += 1;
  const [left, right] = [
    old.slice(head, old.length - tail),
    now.slice(head, now.length - tail),
  ] as const;
  const lines = marked("same", old.slice(0, head));
  let [from, to] = [0, 0];
  for (const [i, j] of commonLines(left, right)) {
    lines.push(...marked("removed", left.slice(from, i)), ...marked("added", right.slice(to, j)));
    lines.push({ kind: "same", text: left[i]! });
    [from, to] = [i + 1, j + 1];
  }
  lines.push(...marked("removed", left.slice(from)), ...marked("added", right.slice(to)));
  return [...lines, ...marked("same", old.slice(old.length - tail))];
}

/** What a run printed, as text. */
export function outputText({ output, error }: RunRecord): string {
  const printed = output
    .map(({ text, picture, html }) =>
      picture ? `[picture: ${picture.description}]\n` : html === undefined ? text : "[HTML]\n",
    )
    .join("");
  return error ? `${printed}${error.text}` : printed;
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
