/**
 * A buffer as a grid of its elements, drawn on a canvas.
 *
 * Elements of a line that the cache holds are tinted, those just touched glow and fade, the one
 * touched last has a frame. Where a buffer is large, only the part that is ever touched is drawn.
 */

import { element } from "../../dom";
import { themeColour } from "../plot";
import { elementsOf, type Replay } from "./replay";
import { indices } from "./report";

/** Accesses after which an element has faded. */
const FADE = 40;
const MAX_CELLS = 256;
const FOLD = 32;
/** Sizes of cells in pixels, and from which on there are lines between them. */
const MAX_CELL_SIZE = 17;
const RULED = 6;
const TALLEST = 640;

/** Which rows and columns are drawn, of how many; `slice` rows belong together. */
export interface Frame {
  row: number;
  rows: number;
  column: number;
  columns: number;
  width: number;
  slice: number;
}

/** Rows and columns of a shape: the last dimension goes across, a single long one is folded. */
export function layout(shape: number[]): { rows: number; columns: number; slice: number } {
  const count = elementsOf(shape);
  if (shape.length < 2) {
    const columns = Math.max(1, Math.min(count, FOLD));
    const rows = Math.ceil(count / columns);
    return { rows, columns, slice: rows };
  }
  const columns = shape.at(-1)!;
  return { rows: count / columns, columns, slice: shape.at(-2)! };
}

/** The part of a shape that holds the elements touched, cut where it is too large to be drawn. */
export function frame(shape: number[], touched: Iterable<number>): Frame {
  const { rows, columns, slice } = layout(shape);
  if (rows <= MAX_CELLS && columns <= MAX_CELLS)
    return { row: 0, rows, column: 0, columns, width: columns, slice };
  let [top, bottom, left, right] = [rows, 0, columns, 0];
  for (const each of touched) {
    const row = Math.floor(each / columns);
    const column = each % columns;
    top = Math.min(top, row);
    bottom = Math.max(bottom, row);
    left = Math.min(left, column);
    right = Math.max(right, column);
  }
  if (top > bottom) [top, left] = [bottom, right] = [0, 0];
  const height = Math.min(bottom - top + 1, MAX_CELLS);
  const width = Math.min(right - left + 1, MAX_CELLS);
  return { row: top, rows: height, column: left, columns: width, width: columns, slice: height };
}

type Colour = [red: number, green: number, blue: number];

export interface Palette {
  blank: Colour;
  touched: Colour;
  held: Colour;
  hit: Colour;
  miss: Colour;
  ink: string;
}

/** The colours of the theme, as numbers. */
export function palette(parent: HTMLElement): Palette {
  const context = element("canvas").getContext("2d", { willReadFrequently: true })!;
  const colour = (name: string): Colour => {
    context.fillStyle = themeColour(parent, name);
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
    return [red!, green!, blue!];
  };
  return {
    blank: colour("--sheet"),
    touched: colour("--line"),
    held: colour("--selection"),
    hit: colour("--accent"),
    miss: colour("--amber"),
    ink: themeColour(parent, "--ink"),
  };
}

export class BufferGrid {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", { role: "img" });
  private readonly count = element("span", { class: "grid-count" });
  private readonly frame: Frame;
  private readonly cells = element("canvas");
  private cell = 0;

  constructor(
    private readonly replay: Replay,
    private readonly buffer: number,
  ) {
    const { name, dtype, shape } = replay.buffers[buffer]!;
    this.frame = frame(shape, this.touched());
    this.cells.width = this.frame.columns;
    this.cells.height = this.frame.rows;
    const title = element(
      "figcaption",
      {},
      element("strong", {}, name),
      ` ${shape.join("×") || "scalar"} ${dtype}`,
      this.part(),
      this.count,
    );
    this.root = element(
      "figure",
      { class: "buffer-grid", "data-buffer": name },
      title,
      this.canvas,
    );
  }

  /** Fit the grid into a width; the cells' size is the same for grids with as many columns. */
  fit(width: number): void {
    const { rows, columns } = this.frame;
    const cell = Math.max(1, Math.min(MAX_CELL_SIZE, (width - 2) / columns, TALLEST / rows));
    this.cell = cell < RULED ? cell : Math.floor(cell);
    const ratio = devicePixelRatio || 1;
    const [across, down] = [
      columns * this.cell + 2,
      rows * this.cell + 2 + this.gaps(rows) * this.gap,
    ];
    this.canvas.width = Math.ceil(across * ratio);
    this.canvas.height = Math.ceil(down * ratio);
    this.canvas.style.width = `${across}px`;
    this.canvas.style.height = `${down}px`;
  }

  /** Draw the buffer as it is now; without `fading` only the last access stands out. While it is
   * `moving`, the words for those who cannot see it wait. */
  draw(colours: Palette, fading: boolean, moving: boolean): void {
    const { columns, rows } = this.frame;
    const context = this.canvas.getContext("2d");
    const cells = this.cells.getContext("2d");
    if (!context || !cells || !this.cell) return;
    cells.putImageData(new ImageData(this.pixels(colours, fading), columns, rows), 0, 0);
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = false;
    const step = Math.min(this.frame.slice, rows);
    for (let row = 0; row < rows; row += step) {
      const height = Math.min(step, rows - row);
      const top = this.top(row);
      context.drawImage(
        this.cells,
        0,
        row,
        columns,
        height,
        1,
        top,
        columns * this.cell,
        height * this.cell,
      );
      this.rule(context, colours, top, height);
    }
    this.mark(context, colours);
    this.tell(moving);
  }

  private pixels(colours: Palette, fading: boolean): Uint8ClampedArray<ArrayBuffer> {
    const { row, rows, column, columns, width } = this.frame;
    const { position, hits, last } = this.replay;
    const times = last[this.buffer]!;
    const pixels = new Uint8ClampedArray(rows * columns * 4);
    let at = 0;
    for (let down = 0; down < rows; down++) {
      for (let across = 0; across < columns; across++, at += 4) {
        const each = (row + down) * width + column + across;
        const time = times[each] ?? 0;
        const [red, green, blue] = this.replay.holds(this.buffer, each)
          ? colours.held
          : time
            ? colours.touched
            : colours.blank;
        const age = time ? position - time : Infinity;
        const glow = fading ? Math.max(0, 1 - age / FADE) : age === 0 ? 1 : 0;
        const [r, g, b] = hits.hit[time - 1] ? colours.hit : colours.miss;
        pixels[at] = red + (r - red) * glow;
        pixels[at + 1] = green + (g - green) * glow;
        pixels[at + 2] = blue + (b - blue) * glow;
        pixels[at + 3] = 255;
      }
    }
    return pixels;
  }

  /** Thin lines between cells that are large enough. */
  private rule(
    context: CanvasRenderingContext2D,
    colours: Palette,
    top: number,
    rows: number,
  ): void {
    const { columns } = this.frame;
    context.strokeStyle = `rgb(${colours.touched.join(" ")})`;
    context.lineWidth = 1;
    context.beginPath();
    const step = this.cell >= RULED ? 1 : Math.max(rows, columns);
    for (let column = 0; column <= columns; column += step) {
      context.moveTo(1 + column * this.cell, top);
      context.lineTo(1 + column * this.cell, top + rows * this.cell);
    }
    for (let row = 0; row <= rows; row += step) {
      context.moveTo(1, top + row * this.cell);
      context.lineTo(1 + columns * this.cell, top + row * this.cell);
    }
    context.stroke();
  }

  /** A frame around the element that was touched last, if it is one of these. */
  private mark(context: CanvasRenderingContext2D, colours: Palette): void {
    const { position, accesses } = this.replay;
    if (!position || this.replay.bufferOf(position - 1) !== this.buffer) return;
    const each = accesses.element[position - 1]!;
    const row = Math.floor(each / this.frame.width) - this.frame.row;
    const column = (each % this.frame.width) - this.frame.column;
    if (row >= this.frame.rows || column >= this.frame.columns) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    const size = Math.max(this.cell, 5);
    context.strokeRect(1 + column * this.cell, this.top(row), size, size);
  }

  private tell(moving: boolean): void {
    const { hits, misses } = this.replay.counts[this.buffer]!;
    const { name, shape } = this.replay.buffers[this.buffer]!;
    const made = hits + misses;
    this.count.textContent = `${hits.toLocaleString("en")} of ${made.toLocaleString("en")} hit`;
    if (moving && this.canvas.hasAttribute("aria-label")) return;
    const last = this.replay.position - 1;
    const here = last >= 0 && this.replay.bufferOf(last) === this.buffer;
    const place = here
      ? `; the last at ${indices(shape, this.replay.accesses.element[last]!).join(", ")}`
      : "";
    this.canvas.setAttribute(
      "aria-label",
      `Grid of ${name}: ${made} accesses so far, ${hits} of them hits${place}`,
    );
  }

  private part(): string {
    const { row, rows, column, columns, width } = this.frame;
    const whole = layout(this.replay.buffers[this.buffer]!.shape);
    if (rows === whole.rows && columns === width) return "";
    return `, rows ${row}–${row + rows - 1}, columns ${column}–${column + columns - 1}`;
  }

  private *touched(): Generator<number> {
    const { accesses } = this.replay;
    for (let at = 0; at < accesses.count; at++) {
      if (this.replay.bufferOf(at) === this.buffer) yield accesses.element[at]!;
    }
  }

  private get gap(): number {
    return this.cell >= 4 ? 4 : 1;
  }

  private gaps(rows: number): number {
    return Math.max(0, Math.ceil(rows / this.frame.slice) - 1);
  }

  private top(row: number): number {
    return 1 + row * this.cell + Math.floor(row / this.frame.slice) * this.gap;
  }
}
