/** Lines of WebAssembly's text format in colour, with the classes that the editor uses. */

import { element } from "../../dom";
import { VECTOR_PREFIXES } from "../../python/wire";

const TOKEN =
  /(;;.*)|("(?:[^"\\]|\\.)*")|(\$[^\s()]+)|(-?\b(?:0x[\da-f]+|\d[\d.]*(?:e[+-]?\d+)?|inf|nan\S*)\b)|([a-z][\w.]*)/gi;
/** Of the groups of TOKEN, but for the last, which is a word. */
const CLASSES = ["tok-comment", "tok-string", "wat-name", "tok-number"];
const CONTROL =
  /^(block|loop|if|else|end|br|br_if|br_table|call|call_indirect|return|unreachable|select|drop)$/;
const DECLARATION =
  /^(module|import|export|func|param|result|local|memory|global|table|elem|data|mut|shared|i32|i64|f32|f64|v128)$/;

export function watLine(text: string): DocumentFragment {
  const line = new DocumentFragment();
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [token, ...groups] = match;
    const kind = CLASSES[groups.findIndex((group) => group !== undefined)] ?? wordClass(token);
    line.append(
      text.slice(end, match.index),
      kind ? element("span", { class: kind }, token) : token,
    );
    end = match.index + token.length;
  }
  line.append(text.slice(end));
  return line;
}

function wordClass(word: string): string | null {
  if (CONTROL.test(word) || DECLARATION.test(word)) return "tok-keyword";
  return VECTOR_PREFIXES.some((prefix) => word.startsWith(prefix)) ? "tok-className" : null;
}
