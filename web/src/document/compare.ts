/** Two runs beside each other: how long they took, and what differs in code and output. */

import { aligned, type MarkedLine } from "../views/trace/diff";
import type { RunRecord } from "./record";

/** The lines of two texts, with those marked that only one of them has. */
export function lineDiff(before: string, after: string): MarkedLine[] {
  return aligned(linesOf(before), linesOf(after), "same");
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
