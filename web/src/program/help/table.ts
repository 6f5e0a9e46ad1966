/** The API of the package, as its stubs tell it, and what the program's names lead to in it. */

import type { LiveNames } from "../../python/wire";

/** Kind, signature, text, and the module or class that the name leads to. */
export type Member = [
  kind: "module" | "class" | "function" | "value",
  signature: string,
  text: string,
  leads: string,
];
export type Members = Record<string, Member>;

export interface ApiTable {
  modules: Record<string, Members>;
  classes: Record<string, Members>;
}

export const NO_NAMES: LiveNames = { variables: {}, functions: [], blocks: [] };

/** Assignments and annotations are followed so far; programs rarely chain more. */
const DEPTH = 8;

export class Names {
  constructor(
    private readonly table: ApiTable,
    private readonly text: string,
    private readonly live: LiveNames = NO_NAMES,
  ) {}

  /** The members of what a dotted expression is; null where that is not known. */
  membersOf(expression: string, depth = DEPTH): Members | null {
    if (depth === 0) return null;
    if (!expression.includes(".")) return this.membersOfName(expression, depth);
    const member = this.find(expression, depth - 1);
    return (
      member && (this.table[member[0] === "module" ? "modules" : "classes"][member[3]] ?? null)
    );
  }

  /** What a dotted expression names in the API. */
  find(expression: string, depth = DEPTH): Member | null {
    const at = expression.lastIndexOf(".");
    if (at >= 0)
      return this.membersOf(expression.slice(0, at), depth)?.[expression.slice(at + 1)] ?? null;
    const imported = this.imported(expression);
    if (!imported) return null;
    if (this.table.modules[imported]) return ["module", "", "", imported];
    const dot = imported.lastIndexOf(".");
    return this.table.modules[imported.slice(0, dot)]?.[imported.slice(dot + 1)] ?? null;
  }

  private membersOfName(name: string, depth: number): Members | null {
    const { modules, classes } = this.table;
    const imported = this.imported(name);
    if (imported && modules[imported]) return modules[imported];
    const type = this.live.variables[name];
    if (type && classes[type]) return classes[type];
    // The program's text: what a variable is assigned, what a parameter is annotated with.
    const word = escapePattern(name);
    const assigned = last(
      this.text,
      new RegExp(`(?:^|[\\n;,(])[ \\t]*${word}[ \\t]*=[ \\t]*([\\w.]+)\\(`, "g"),
    );
    const annotated = last(this.text, new RegExp(`[(,\\s]${word}[ \\t]*:[ \\t]*([\\w.]+)`, "g"));
    for (const path of [assigned, annotated]) {
      const member = path && path !== name ? this.find(path, depth - 1) : null;
      if (member && member[0] !== "module" && member[3]) return classes[member[3]] ?? null;
    }
    return null;
  }

  /** The full name of what a name was imported as. */
  private imported(name: string): string | null {
    const word = escapePattern(name);
    const whole = (path: string): string => path.replace(/^mlcweb\b/, "tvm");
    const renamed = new RegExp(
      `^[ \\t]*import[ \\t]+([\\w.]+)[ \\t]+as[ \\t]+${word}\\b`,
      "m",
    ).exec(this.text);
    if (renamed) return whole(renamed[1]!);
    for (const [, from, names] of this.text.matchAll(
      /^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([^)\n]+)/gm,
    )) {
      for (const each of names!.split(",")) {
        const [original, alias = original] = each.trim().split(/\s+as\s+/);
        if (alias === name) return whole(`${from}.${original}`);
      }
    }
    const plain = new RegExp(
      `^[ \\t]*import[ \\t]+(?:[\\w. ,]*,[ \\t]*)?${word}(?:[.,\\s]|$)`,
      "m",
    ).test(this.text);
    return plain ? whole(name) : null;
  }
}

function last(text: string, pattern: RegExp): string | null {
  let group: string | null = null;
  for (const match of text.matchAll(pattern)) group = match[1]!;
  return group;
}

function escapePattern(text: string): string {
  return text.replace(/[^\w]/g, "\\$&");
}
