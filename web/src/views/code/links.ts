/** Which lines of TensorIR, loops and WAT belong together. Lines count from 1. */

import type { MachineCode } from "../../python/wire";

export type Pane = "tensorir" | "lowered" | "wat";

export type Lines = ReadonlySet<number>;

/** Lines that belong together, by the text that they stand in. */
export type LitLines = Record<Pane, Lines>;

export class Links {
  private readonly loweredOf: Inverse;
  private readonly watOf: Inverse;
  private readonly middleOf: Inverse;

  /** `middle` has the origins of the loops that are shown, if these are not the final ones. */
  constructor(
    private readonly code: Pick<MachineCode, "tensorir" | "lowered" | "wat">,
    private readonly middle: number[][] | null = null,
  ) {
    this.loweredOf = inverse(code.lowered?.origins ?? []);
    this.watOf = inverse(code.wat?.origins ?? []);
    this.middleOf = middle ? inverse(middle) : this.loweredOf;
  }

  /** What lights up with a line of one of the texts, the line itself included. */
  from(pane: Pane, line: number): LitLines {
    const own = new Set([line]);
    if (pane === "tensorir") {
      const meant = this.code.tensorir.standsFor[line - 1] ?? [];
      return { ...this.below(meant), tensorir: new Set([line, ...meant]) };
    }
    if (pane === "wat") {
      const loops = this.code.wat?.origins[line - 1] ?? [];
      const tensorir = this.above(loops);
      const lowered = this.middle ? this.below(tensorir).lowered : new Set(loops);
      return { tensorir: new Set(tensorir), lowered, wat: own };
    }
    const tensorir = this.middle ? (this.middle[line - 1] ?? []) : this.above([line]);
    const wat = this.middle ? this.below(tensorir).wat : new Set(this.watOf[line]);
    return { tensorir: new Set(tensorir), lowered: own, wat };
  }

  /** The line of TensorIR that a line comes from in the first place, or null. */
  origin(pane: Pane, line: number): number | null {
    if (pane === "tensorir") return line;
    if (pane === "lowered" && this.middle) return this.middle[line - 1]?.at(-1) ?? null;
    const loops = pane === "lowered" ? [line] : (this.code.wat?.origins[line - 1] ?? []);
    return this.above(loops).at(-1) ?? null;
  }

  private above(loops: number[]): number[] {
    return loops.flatMap((line) => this.code.lowered?.origins[line - 1] ?? []);
  }

  private below(tensorir: number[]): { lowered: Lines; wat: Lines } {
    const of = (lines: number[], by: Inverse): number[] => lines.flatMap((line) => by[line] ?? []);
    return {
      lowered: new Set(of(tensorir, this.middleOf)),
      wat: new Set(of(of(tensorir, this.loweredOf), this.watOf)),
    };
  }
}

/** For each origin the lines, from 1, that come from it. */
type Inverse = (number[] | undefined)[];

function inverse(origins: number[][]): Inverse {
  const inverted: Inverse = [];
  for (const [index, lines] of origins.entries()) {
    for (const line of lines) {
      inverted[line] ??= [];
      inverted[line].push(index + 1);
    }
  }
  return inverted;
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
