/** The call that the cursor is in: which function, and which argument. */

export interface OpenCall {
  /** Dotted expression that is called. */
  callee: string;
  /** Offset of the opening parenthesis. */
  from: number;
  /** How many arguments stand before the cursor's. */
  index: number;
  /** Name of the argument, where it is given by name. */
  keyword: string | null;
}

/** Characters looked back at most. */
const REACH = 2000;

const CLOSING: Record<string, string> = { ")": "(", "]": "[", "}": "{" };

/** The innermost call around the end of `text`; null where there is none. */
export function openCall(text: string): OpenCall | null {
  const start = Math.max(0, text.length - REACH);
  const open: { bracket: string; at: number; commas: number; argument: number }[] = [];
  let quote = "";
  for (let at = start; at < text.length; at += 1) {
    const character = text[at]!;
    if (quote) {
      if (character === "\\") at += 1;
      else if (character === quote || character === "\n") quote = "";
    } else if (character === '"' || character === "'") quote = character;
    else if (character === "#") {
      const end = text.indexOf("\n", at);
      if (end < 0) return null;
      at = end;
    } else if ("([{".includes(character))
      open.push({ bracket: character, at, commas: 0, argument: at + 1 });
    else if (character in CLOSING) {
      if (open.at(-1)?.bracket === CLOSING[character]) open.pop();
      else open.length = 0;
    } else if (character === ",") {
      const innermost = open.at(-1);
      if (innermost) {
        innermost.commas += 1;
        innermost.argument = at + 1;
      }
    }
  }
  for (const { bracket, at, commas, argument } of open.reverse()) {
    const callee = bracket === "(" ? /([A-Za-z_][\w.]*)\s*$/.exec(text.slice(start, at)) : null;
    if (!callee || /\b(?:def|class)\s+[\w.]*$/.test(text.slice(start, at))) continue;
    const keyword = /^\s*([A-Za-z_]\w*)\s*=(?!=)/.exec(text.slice(argument));
    return { callee: callee[1]!, from: at, index: commas, keyword: keyword?.[1] ?? null };
  }
  return null;
}

/** The parameters of a signature such as `(a: int, b = 1, *, c)`, markers left out. */
export function parametersOf(
  signature: string,
): { text: string; name: string; keywordOnly: boolean }[] {
  const inner = signature.replace(/^\(|\)$/g, "");
  const parts: string[] = [];
  let depth = 0;
  let begin = 0;
  for (let at = 0; at <= inner.length; at += 1) {
    const character = inner[at];
    if (character !== undefined && "([{".includes(character)) depth += 1;
    else if (character !== undefined && ")]}".includes(character)) depth -= 1;
    else if (character === undefined || (character === "," && depth === 0)) {
      parts.push(inner.slice(begin, at).trim());
      begin = at + 1;
    }
  }
  let keywordOnly = false;
  return parts
    .filter((text) => text !== "" && text !== "/")
    .map((text) => {
      const parameter = { text, name: /^\**(\w*)/.exec(text)![1]!, keywordOnly };
      if (text.startsWith("*") && !text.startsWith("**")) keywordOnly = true;
      return parameter;
    })
    .filter(({ text }) => text !== "*");
}

/** Index of the parameter that the cursor's argument is for; -1 where there is none. */
export function activeParameter(signature: string, { index, keyword }: OpenCall): number {
  const parameters = parametersOf(signature);
  if (keyword !== null) return parameters.findIndex(({ name }) => name === keyword);
  const rest = parameters.findIndex(({ text }) => /^\*(?!\*)/.test(text));
  if (rest >= 0 && index >= rest) return rest;
  return index < parameters.length && !parameters[index]!.keywordOnly ? index : -1;
}
