/** Python text as highlighted lines, with the same classes that the editor uses. */

import { pythonLanguage } from "@codemirror/lang-python";
import { classHighlighter, highlightCode } from "@lezer/highlight";
import { element } from "./dom";

/** One fragment per line of `text`. */
export function highlightedLines(text: string): DocumentFragment[] {
  let line = new DocumentFragment();
  const lines = [line];
  highlightCode(
    text,
    pythonLanguage.parser.parse(text),
    classHighlighter,
    (code, classes) => line.append(classes ? element("span", { class: classes }, code) : code),
    () => {
      line = new DocumentFragment();
      lines.push(line);
    },
  );
  return lines;
}

/** A `<code>` element with one span per line, for lists that number or mark their lines. */
export function highlighted(text: string): HTMLElement {
  const code = element("code", { class: "listing" });
  for (const line of highlightedLines(text.replace(/\n$/, ""))) {
    code.append(element("span", { class: "line" }, line), "\n");
  }
  return code;
}
