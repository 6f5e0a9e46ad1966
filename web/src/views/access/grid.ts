/**
 * A buffer as a grid of its elements: a canvas with a pixel for each, which the style sheet enlarges.
 *
 * Elements of a line that the cache holds are tinted, those just touched glow and fade, the one
 * touched last has a frame. Where a buffer is large, only the part that is ever touched is drawn.
 */

import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { element } from "../../dom";
import { whole } from "../format";
import type { Replay } from "./replay";
import { elementsOf, indices } from "./report";

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

const COLOURS = {
  blank: "--sheet",
  touched: "--line",
  held: "--selection",
  hit: "--accent",
  miss: "--amber",
};

export type Palette = Record<keyof typeof COLOURS, [red: number, green: number, blue: number]>;

/** The colours of the theme, as numbers. */
export function palette(parent: HTMLElement): Palette {
  const probe = element("span");
  // Where the system imposes its colours on text, a picture still tells things apart by colour.
  probe.style.setProperty("forced-color-adjust", "none");
  parent.append(probe);
  const context = element("canvas").getContext("2d", { willReadFrequently: true })!;
  const entries = Object.entries(COLOURS).map(([name, variable]) => {
    probe.style.color = `var(${variable})`;
    context.fillStyle = getComputedStyle(probe).color;
    context.fillRect(0, 0, 1, 1);
    return [name, [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)];
  });
  probe.remove();
  return Object.fromEntries(entries) as Palette;
}

interface Look {
  /** Pixels that the grid may be wide. */
  width: number;
  colours: Palette;
  /** Whether accesses fade; else only the last stands out. */
  fading: boolean;
  /** Whether it plays: words for those who cannot see it wait then. */
  moving: boolean;
}

/** A buffer as it is at the position of the replay; `shown` is the part that is drawn. */
export function bufferGrid(
  replay: Replay,
  buffer: number,
  shown: Frame,
  look: Look,
): TemplateResult {
  const { name, dtype, shape } = replay.buffers[buffer]!;
  const { row, rows, column, columns, width, slice } = shown;
  const fitting = Math.max(1, Math.min(MAX_CELL_SIZE, (look.width - 2) / columns, TALLEST / rows));
  const cell = fitting < RULED ? fitting : Math.floor(fitting);
  const part =
    rows === layout(shape).rows && columns === width
      ? ""
      : `, rows ${row}–${row + rows - 1}, columns ${column}–${column + columns - 1}`;
  const { hits, misses } = replay.counts[buffer]!;
  const access = replay.position - 1;
  const last = replay.bufferOf(access) === buffer ? replay.accesses.element[access]! : null;
  const at = last === null ? "" : `; the last at ${indices(shape, last).join(", ")}`;
  const label = look.moving
    ? `Grid of ${name}, playing`
    : `Grid of ${name}: ${hits + misses} accesses so far, ${hits} of them hits${at}`;
  const paint = (canvas: Element | undefined): void =>
    (canvas as HTMLCanvasElement | undefined)
      ?.getContext("2d")
      ?.putImageData(new ImageData(pixels(replay, buffer, shown, look), columns, rows), 0, 0);
  const [down, across] =
    last === null ? [-1, -1] : [Math.floor(last / width) - row, (last % width) - column];
  const inside = down >= 0 && down < rows && across >= 0 && across < columns;
  const kind = `${cell < RULED ? "" : "is-ruled"} ${slice < rows ? "is-sliced" : ""}`;
  return html`<figure class="buffer-grid" data-buffer=${name}>
    <figcaption><strong>${name}</strong> ${shape.join("×") || "scalar"} ${dtype}${part}<span
      class="grid-count">${whole(hits)} of ${whole(hits + misses)} hit</span></figcaption>
    <div class="grid-cells ${kind}"
      .style=${`--cell: ${cell}px; --columns: ${columns}; --rows: ${rows}; --slice: ${slice}`}>
      <canvas role="img" aria-label=${label} width=${columns} height=${rows} ${ref(paint)}></canvas>
      ${inside ? html`<i .style=${`--down: ${down}; --across: ${across}`}></i>` : nothing}
    </div>
  </figure>`;
}

function pixels(
  replay: Replay,
  buffer: number,
  { row, rows, column, columns, width }: Frame,
  { colours, fading }: Look,
): Uint8ClampedArray<ArrayBuffer> {
  const { position, hits, last } = replay;
  const times = last[buffer]!;
  const data = new Uint8ClampedArray(rows * columns * 4);
  let at = 0;
  for (let down = 0; down < rows; down++) {
    for (let across = 0; across < columns; across++, at += 4) {
      const each = (row + down) * width + column + across;
      const time = times[each] ?? 0;
      const ground = replay.holds(buffer, each)
        ? colours.held
        : time
          ? colours.touched
          : colours.blank;
      const age = time ? position - time : Infinity;
      const glow = fading ? Math.max(0, 1 - age / FADE) : age === 0 ? 1 : 0;
      const touch = hits.hit[time - 1] ? colours.hit : colours.miss;
      for (let part = 0; part < 3; part++)
        data[at + part] = ground[part]! + (touch[part]! - ground[part]!) * glow;
      data[at + 3] = 255;
    }
  }
  return data;
}
