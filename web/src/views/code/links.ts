/** Which lines of TensorIR, loops and WAT belong together. Lines count from 1. */

import type { MachineCode } from "../../python/wire";

export type Pane = "tensorir" | "lowered" | "wat";

export type Lines = ReadonlySet<number>;

/** Lines that belong together, by the text that they stand in. */
export type LitLines = Record<Pane, Lines>;

export class Links {
  private readonly lowered: Origins;
  private readonly wat: Origins;
  /** Of the loops that are shown. */
  private readonly shown: Origins;

  /** `middle` has the origins of the loops that are shown, if these are not the final ones. */
  constructor(
    private readonly code: Pick<MachineCode, "tensorir" | "lowered" | "wat">,
    middle: number[][] | null = null,
  ) {
    this.lowered = new Origins(code.lowered?.origins ?? []);
    this.wat = new Origins(code.wat?.origins ?? []);
    this.shown = middle ? new Origins(middle) : this.lowered;
  }

  /** What lights up with a line of one of the texts, the line itself included. */
  from(pane: Pane, line: number): LitLines {
    const isFinal = this.shown === this.lowered;
    if (pane === "tensorir") {
      const meant = this.code.tensorir.standsFor[line - 1] ?? [];
      const loops = this.lowered.linesFrom(meant);
      return lit([line, ...meant], this.shown.linesFrom(meant), this.wat.linesFrom(loops));
    }
    if (pane === "wat") {
      const loops = this.wat.of([line]);
      const tensorir = this.lowered.of(loops);
      return lit(tensorir, isFinal ? loops : this.shown.linesFrom(tensorir), [line]);
    }
    const tensorir = this.shown.of([line]);
    const loops = isFinal ? [line] : this.lowered.linesFrom(tensorir);
    return lit(tensorir, [line], this.wat.linesFrom(loops));
  }

  /** The line of TensorIR that a line comes from in the first place, or null. */
  origin(pane: Pane, line: number): number | null {
    if (pane === "tensorir") return line;
    const { lowered, shown, wat } = this;
    const lines = pane === "wat" ? lowered.of(wat.of([line])) : shown.of([line]);
    return lines.at(-1) ?? null;
  }
}

function lit(tensorir: number[], lowered: number[], wat: number[]): LitLines {
  return { tensorir: new Set(tensorir), lowered: new Set(lowered), wat: new Set(wat) };
}

/** Which lines of a text above the lines of a text come from. */
class Origins {
  private readonly inverse: (number[] | undefined)[] = [];

  constructor(private readonly origins: number[][]) {
    for (const [index, lines] of origins.entries())
      for (const line of lines) {
        this.inverse[line] ??= [];
        this.inverse[line].push(index + 1);
      }
  }

  of(lines: number[]): number[] {
    return lines.flatMap((line) => this.origins[line - 1] ?? []);
  }

  /** The lines that come from these. */
  linesFrom(origins: number[]): number[] {
    return origins.flatMap((origin) => this.inverse[origin] ?? []);
  }
}

/** Successive numbers as ranges of a first and a last one. */
export function ranges(lines: Iterable<number>): [first: number, last: number][] {
  const result: [number, number][] = [];
  for (const line of [...lines].sort((a, b) => a - b)) {
    const last = result.at(-1);
    if (last && line <= last[1] + 1) last[1] = Math.max(last[1], line);
    else result.push([line, line]);
  }
  return result;
}
