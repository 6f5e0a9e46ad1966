/** Small drawings in SVG: scales, axes and marks. Tables stand behind them for those who cannot see. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import { short, timing } from "./format";
import { measuredWidth } from "./kit";

export type Scale = (value: number) => number;

/** From `domain` onto `range`. */
export function linear(
  [low, high]: readonly [number, number],
  [from, to]: readonly [number, number],
): Scale {
  const width = high - low || 1;
  return (value) => from + ((value - low) / width) * (to - from);
}

/** The same for positive numbers, by their logarithms. */
export function logarithmic(
  [low, high]: readonly [number, number],
  range: readonly [number, number],
): Scale {
  const scale = linear([Math.log(low), Math.log(high)], range);
  return (value) => scale(Math.log(value));
}

/** The least and the largest, with some air between equal ones. */
export function extent(values: readonly number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  return low === high ? [low * 0.9, high * 1.1 || 1] : [low, high];
}

/** Round numbers inside a range, about `count` of them; no nearer to each other than `least`. */
export function ticks([low, high]: readonly [number, number], count: number, least = 0): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const round =
    [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  const step = Math.max(least, round);
  const values: number[] = [];
  for (let number = Math.ceil(low / step); number * step <= high + step * 1e-9; number += 1) {
    values.push(Number((number * step).toPrecision(12)));
  }
  return values;
}

/**
 * Numbers with one significant digit of 1, 2 or 5 inside a range; more where it is narrow, powers
 * of ten alone where it is wide.
 */
export function logTicks([low, high]: readonly [number, number]): number[] {
  const values: number[] = [];
  const digits = high / low > 200 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const digit of digits) {
      const value = Number(`${digit}e${power}`);
      if (value >= low && value <= high) values.push(value);
    }
  }
  return values.length > 1 ? values : ticks([low, high], 4).filter((value) => value > 0);
}

/** Pixels around a chart, and between its ends and the outermost values. */
const AROUND = { left: 52, right: 14, top: 22, bottom: 38 };
const INSET = 6;

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Axis {
  domain: readonly [number, number];
  title: string;
  log?: boolean;
  /** Whether it counts something, so that only whole numbers are. */
  whole?: boolean;
  text?: (value: number) => string;
}

/** A logarithmic axis on which all of `seconds` lie. */
export function timeAxis(seconds: readonly number[], title = "time"): Axis {
  return { domain: extent(seconds), log: true, text: timing, title };
}

/** A drawing that is as wide as there is room; a part of templates. */
export class Plot {
  private readonly measured = measuredWidth();

  constructor(
    private readonly height: number,
    private readonly testId: string,
  ) {}

  /** The drawing of what `draw` makes of a width; null keeps its place free. */
  template(label: string, draw: ((width: number) => unknown) | null): TemplateResult {
    const width = this.measured.width.value;
    const picture = (): TemplateResult => html`<svg width=${width} height=${this.height}
      viewBox="0 0 ${width} ${this.height}" aria-hidden="true" focusable="false">${draw?.(width)}</svg>`;
    return html`<div class="plot ${draw ? "" : "blank"}" role="img" aria-label=${label}
      data-testid=${this.testId} .style=${`height: ${this.height}px`} ${this.measured.host}
      >${draw && width ? picture() : nothing}</div>`;
  }

  /** A chart between two axes in which `marks` draws; null keeps its place free. */
  chart(
    label: string,
    axes: { x: Axis; y: Axis } | null,
    marks: (x: Scale, y: Scale, frame: Frame) => unknown,
  ): TemplateResult {
    const draw = (width: number): unknown => {
      const { x, y } = axes!;
      const { left, top } = AROUND;
      const [right, bottom] = [width - AROUND.right, this.height - AROUND.bottom];
      const across = scaleOf(x, [left + INSET, right - INSET]);
      const upwards = scaleOf(y, [bottom - INSET, top + INSET]);
      return svg`<g class="plot-axes">
        ${ticksOf(y, 5).map((tick) => {
          const at = upwards(tick);
          return svg`<line x1=${left} x2=${right} y1=${at} y2=${at}></line>
            <text x=${left - 6} y=${at + 4} text-anchor="end">${(y.text ?? short)(tick)}</text>`;
        })}
        ${ticksOf(x, width > 500 ? 8 : 4).map((tick) => {
          const at = across(tick);
          return svg`<line x1=${at} x2=${at} y1=${bottom} y2=${bottom + 4}></line>
            <text x=${at} y=${bottom + 16} text-anchor="middle">${(x.text ?? short)(tick)}</text>`;
        })}
        <text x=${right} y=${bottom + 32} text-anchor="end">${x.title}</text>
        <text x="14" y=${top - 6}>${y.title}</text>
      </g>${marks(across, upwards, { left, right, top, bottom })}`;
    };
    return this.template(label, axes && draw);
  }
}

function scaleOf({ domain, log }: Axis, range: [number, number]): Scale {
  return (log ? logarithmic : linear)(domain, range);
}

function ticksOf({ domain, log, whole }: Axis, count: number): number[] {
  return log ? logTicks(domain) : ticks(domain, count, whole ? 1 : 0);
}

/** The data of an SVG path through points; with `steps` it goes across first, then up or down. */
export function path(points: readonly (readonly [number, number])[], steps = false): string {
  return points
    .map(([x, y], at) =>
      at && steps
        ? `H${x.toFixed(1)}V${y.toFixed(1)}`
        : `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`,
    )
    .join("");
}

/** What the marks of a drawing mean: classes and texts. */
export function legend(...keys: (readonly [kind: string, text: string])[]): unknown {
  return html`<div class="legend" aria-hidden="true">${keys.map(
    ([kind, text]) => html`<span class="key ${kind}">${text}</span>`,
  )}</div>`;
}
