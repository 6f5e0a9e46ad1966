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

export const NO_NAMES: LiveNames = {
  variables: {},
  functions: [],
  blocks: [],
  loops: [],
  buffers: [],
};

/** What an expression stands for. */
type Place = { module: string } | { class: string };

/** Assignments and annotations are followed so far; programs rarely chain more. */
const DEPTH = 8;

export class Names {
  constructor(
    private readonly table: ApiTable,
    private readonly text: string,
    private readonly live: LiveNames = NO_NAMES,
  ) {}

  /** The members of what a dotted expression stands for; null where that is not known. */
  membersOf(expression: string): Members | null {
    const place = this.placeOf(expression, DEPTH);
    if (!place) return null;
    return "module" in place
      ? (this.table.modules[place.module] ?? null)
      : (this.table.classes[place.class] ?? null);
  }

  /** What a dotted expression names in the API. */
  find(expression: string): Member | null {
    const at = expression.lastIndexOf(".");
    if (at >= 0) return this.membersOf(expression.slice(0, at))?.[expression.slice(at + 1)] ?? null;
    const imported = this.imported(expression);
    if (!imported) return null;
    if (this.table.modules[imported]) return ["module", "", "", imported];
    const dot = imported.lastIndexOf(".");
    return this.table.modules[imported.slice(0, dot)]?.[imported.slice(dot + 1)] ?? null;
  }

  private placeOf(expression: string, depth: number): Place | null {
    if (depth === 0) return null;
    const at = expression.lastIndexOf(".");
    if (at < 0) return this.placeOfName(expression, depth);
    const owner = this.placeOf(expression.slice(0, at), depth - 1);
    if (!owner) return null;
    const members =
      "module" in owner ? this.table.modules[owner.module] : this.table.classes[owner.class];
    return this.placeOfMember(members?.[expression.slice(at + 1)]);
  }

  private placeOfMember(member: Member | undefined): Place | null {
    if (!member?.[3]) return null;
    return member[0] === "module" ? { module: member[3] } : { class: member[3] };
  }

  private placeOfName(name: string, depth: number): Place | null {
    const imported = this.imported(name);
    if (imported && this.table.modules[imported]) return { module: imported };
    const known = this.live.variables[name];
    if (known && this.table.classes[known]) return { class: known };
    // The program's text: what a variable is assigned, what a parameter is annotated with.
    const word = escapePattern(name);
    const assigned = last(
      this.text,
      new RegExp(`(?:^|[\\n;,(])[ \\t]*${word}[ \\t]*=[ \\t]*([\\w.]+)\\(`, "g"),
    );
    const annotated = last(this.text, new RegExp(`[(,\\s]${word}[ \\t]*:[ \\t]*([\\w.]+)`, "g"));
    for (const path of [assigned, annotated]) {
      const member = path && path !== name ? this.memberOf(path, depth - 1) : null;
      if (member && member[0] !== "module" && member[3]) return { class: member[3] };
    }
    return null;
  }

  private memberOf(path: string, depth: number): Member | null {
    const at = path.lastIndexOf(".");
    if (at < 0) return this.find(path);
    const place = this.placeOf(path.slice(0, at), depth);
    if (!place) return null;
    const members =
      "module" in place ? this.table.modules[place.module] : this.table.classes[place.class];
    return members?.[path.slice(at + 1)] ?? null;
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
  let found: string | null = null;
  for (const match of text.matchAll(pattern)) found = match[1]!;
  return found;
}

function escapePattern(text: string): string {
  return text.replace(/[^\w]/g, "\\$&");
}
