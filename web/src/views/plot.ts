/** Small drawings in SVG: scales, axes and marks. Tables stand behind them for those who cannot see. */

const NAMESPACE = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number | undefined>;

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

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

/** Round numbers inside a range, about `count` of them. */
export function ticks([low, high]: readonly [number, number], count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  const found: number[] = [];
  for (let number = Math.ceil(low / step); number * step <= high + step * 1e-9; number += 1) {
    found.push(Number((number * step).toPrecision(12)));
  }
  return found;
}

/** Numbers with one significant digit of 1, 2 or 5 inside a range; more where it is narrow. */
export function logTicks([low, high]: readonly [number, number]): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const digit of [1, 2, 5]) {
      const value = Number(`${digit}e${power}`);
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length > 1 ? found : ticks([low, high], 4).filter((value) => value > 0);
}

/** A drawing that is made anew for its width. Hidden, it is not drawn at all. */
export class Drawing {
  private readonly resize = new ResizeObserver(() => this.redraw());
  private width = 0;

  constructor(
    readonly root: HTMLElement,
    private readonly height: number,
    private readonly draw: (width: number, height: number) => (Node | string)[],
  ) {
    this.resize.observe(root);
  }

  /** Draw, where there is room. */
  redraw(always = false): void {
    const width = this.root.clientWidth;
    if (!width || (width === this.width && !always)) return;
    this.width = width;
    const picture = svg(
      "svg",
      {
        width,
        height: this.height,
        viewBox: `0 0 ${width} ${this.height}`,
        "aria-hidden": "true",
        focusable: "false",
      },
      ...this.draw(width, this.height),
    );
    this.root.replaceChildren(picture);
  }

  /** What is drawn has changed. */
  update(): void {
    this.redraw(true);
  }
}

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface AxisOptions {
  scale: Scale;
  ticks: number[];
  text: (value: number) => string;
  title: string;
}

/** Both axes of a drawing, with a line across for each tick. */
export function axes(frame: Frame, x: AxisOptions, y: AxisOptions): SVGGElement {
  const group = svg("g", { class: "plot-axes" });
  for (const tick of y.ticks) {
    const at = y.scale(tick);
    group.append(
      svg("line", { x1: frame.left, x2: frame.right, y1: at, y2: at }),
      svg("text", { x: frame.left - 6, y: at + 4, "text-anchor": "end" }, y.text(tick)),
    );
  }
  for (const tick of x.ticks) {
    const at = x.scale(tick);
    group.append(
      svg("line", { x1: at, x2: at, y1: frame.bottom, y2: frame.bottom + 4 }),
      svg("text", { x: at, y: frame.bottom + 16, "text-anchor": "middle" }, x.text(tick)),
    );
  }
  group.append(
    svg("text", { x: frame.right, y: frame.bottom + 32, "text-anchor": "end" }, x.title),
    svg("text", { x: 14, y: frame.top - 6 }, y.title),
  );
  return group;
}
