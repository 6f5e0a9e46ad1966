/**
 * The roofline: what a kernel reaches, under the roofs that arithmetic and memory put over it.
 *
 * Across goes how many operations a kernel does for each byte of its arguments, upwards how many
 * a second; both axes are logarithmic. A table stands beside it.
 */

import { element } from "../../dom";
import type { CodeMeasurement, MachinePeak } from "../../python/protocol";
import { short, timing } from "../format";

const HEIGHT = 230;
const PLOT = { left: 46, right: 14, top: 14, bottom: 36 };
const SVG = "http://www.w3.org/2000/svg";

export interface Point {
  /** Operations a byte. */
  intensity: number;
  /** Operations a second. */
  rate: number;
}

/** The peak that a kernel is measured against: with fused multiply-adds where it uses some. */
export function peakOf({ peak, fused }: Pick<CodeMeasurement, "peak" | "fused">): number {
  return (fused ? peak.fusedFlops : null) ?? peak.flops;
}

/** The most that a kernel can reach which moves its arguments at `bandwidth` bytes a second. */
export function roof(intensity: number, bandwidth: number, peak: number): number {
  return Math.min(peak, intensity * bandwidth);
}

/** Ranges of both axes, in which the kernel, other intensities and the bends of all roofs lie. */
export function axes(
  { intensity, rate }: Point,
  peak: MachinePeak,
  others: number[] = [],
): { x: [number, number]; y: [number, number] } {
  const top = Math.max(peak.flops, peak.fusedFlops ?? 0, rate);
  const bends = [top / peak.memoryBandwidth, peak.flops / peak.cacheBandwidth, ...others];
  const x: [number, number] = [
    Math.min(intensity, ...bends) / 3,
    Math.max(intensity, ...bends) * 3,
  ];
  return { x, y: [Math.min(rate, roof(x[0], peak.memoryBandwidth, top)) / 2, top * 2] };
}

/** Powers of ten within a range, and where these are few, twos and fives, too. */
export function ticks([low, high]: [number, number]): number[] {
  const found: number[] = [];
  const steps = high / low > 200 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) {
      const tick = Number(`${step}e${power}`);
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found;
}

export class Roofline {
  readonly root = element("div", { class: "roofline" });
  private readonly chart = element("div", { class: "roofline-chart" });
  private readonly table = element("div", { class: "roofline-numbers" });
  private shown: { name: string; measurement: CodeMeasurement; simulated: number | null } | null =
    null;

  constructor() {
    this.root.append(this.chart, this.table);
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  /** Show a measurement; `simulated` is how many operations a byte of simulated traffic gets. */
  show(name: string, measurement: CodeMeasurement, simulated: number | null = null): void {
    this.shown = { name, measurement, simulated };
    this.table.replaceChildren(numbers(measurement, simulated));
    this.draw();
  }

  private draw(): void {
    const width = this.chart.clientWidth;
    if (!this.shown?.measurement.operations) this.chart.replaceChildren();
    else if (width) {
      const { name, measurement, simulated } = this.shown;
      this.chart.replaceChildren(
        drawing(name, measurement, simulated, width),
        legend(simulated !== null),
      );
    }
  }
}

function drawing(
  name: string,
  measurement: CodeMeasurement,
  simulated: number | null,
  width: number,
): SVGElement {
  const { peak } = measurement;
  const point = { intensity: measurement.operations / measurement.bytes, rate: measurement.rate };
  const range = axes(point, peak, simulated === null ? [] : [simulated]);
  const across = scale(range.x, PLOT.left, width - PLOT.right);
  const upwards = scale(range.y, HEIGHT - PLOT.bottom, PLOT.top);
  const svg = node("svg", {
    width,
    height: HEIGHT,
    role: "img",
    "aria-label": `${sentence(name, measurement)} The table has the numbers.`,
  });
  for (const tick of ticks(range.x)) {
    const x = across(tick);
    svg.append(
      node("line", { class: "grid", x1: x, x2: x, y1: PLOT.top, y2: HEIGHT - PLOT.bottom }),
      node(
        "text",
        { class: "tick", x, y: HEIGHT - PLOT.bottom + 15, "text-anchor": "middle" },
        short(tick),
      ),
    );
  }
  for (const tick of ticks([range.y[0] / 1e9, range.y[1] / 1e9])) {
    const y = upwards(tick * 1e9);
    svg.append(
      node("line", { class: "grid", x1: PLOT.left, x2: width - PLOT.right, y1: y, y2: y }),
      node(
        "text",
        { class: "tick", x: PLOT.left - 6, y: y + 4, "text-anchor": "end" },
        short(tick),
      ),
    );
  }
  const right = width - PLOT.right;
  const top = peakOf(measurement);
  const line = (kind: string, bandwidth: number, height: number, from = range.x[0]): SVGElement => {
    const bend = Math.min(Math.max(height / bandwidth, from), range.x[1]);
    const points = [from, bend, range.x[1]].map(
      (x) => `${across(x)},${upwards(roof(x, bandwidth, height))}`,
    );
    return node("polyline", { class: `roof ${kind}`, points: points.join(" ") });
  };
  const highest = Math.max(...peaks(peak));
  for (const height of peaks(peak)) {
    if (height !== top)
      svg.append(
        line("other", peak.memoryBandwidth, height, Math.min(height, top) / peak.memoryBandwidth),
      );
  }
  svg.append(line("cache", peak.cacheBandwidth, top), line("memory", peak.memoryBandwidth, top));
  const x = across(point.intensity);
  const y = upwards(point.rate);
  svg.append(
    node("line", {
      class: "drop",
      x1: x,
      x2: x,
      y1: y,
      y2: upwards(roof(point.intensity, peak.cacheBandwidth, top)),
    }),
  );
  svg.append(
    node(
      "text",
      { class: "roof-label", x: right, y: upwards(highest) - 6, "text-anchor": "end" },
      roofLabel(peak),
    ),
  );
  if (simulated !== null) {
    svg.append(
      node("line", { class: "drop", x1: x, x2: across(simulated), y1: y, y2: y }),
      node("circle", { class: "dot simulated", cx: across(simulated), cy: y, r: 4.5 }),
    );
  }
  svg.append(node("circle", { class: "dot", cx: x, cy: y, r: 5.5 }));
  const left = x > width * 0.6;
  svg.append(
    node(
      "text",
      {
        class: "dot-label",
        x: x + (left ? -9 : 9),
        y: y + 17,
        "text-anchor": left ? "end" : "start",
      },
      `${short(point.rate / 1e9)} GFLOPS`,
    ),
    node(
      "text",
      { class: "axis", x: right, y: HEIGHT - 4, "text-anchor": "end" },
      "operations per byte of the arguments",
    ),
    node("text", { class: "axis", x: 4, y: PLOT.top - 9 }, "GFLOPS"),
  );
  return svg;
}

function legend(simulated: boolean): HTMLElement {
  return element(
    "div",
    { class: "legend", "aria-hidden": "true" },
    element("span", { class: "key trial" }, "this kernel"),
    simulated
      ? element("span", { class: "key simulated" }, "per byte that the small cache moves")
      : null,
    element("span", { class: "key memory" }, "roof of memory"),
    element("span", { class: "key cache" }, "roof of the cache"),
  );
}

/** What was measured, in one sentence. */
export function sentence(name: string, measurement: CodeMeasurement): string {
  const { seconds, rate, operations } = measurement;
  if (!operations) return `${name} takes ${timing(seconds)} and does no arithmetic.`;
  const share = Math.round((100 * rate) / peakOf(measurement));
  return `${name} takes ${timing(seconds)}: ${short(rate / 1e9)} GFLOPS, ${share} % of the peak of ${short(peakOf(measurement) / 1e9)} GFLOPS.`;
}

/** Both peaks in one line: side by side their labels would lie on each other, or on a roof. */
function roofLabel({ flops, fusedFlops }: MachinePeak): string {
  const plain = `multiply, add ${short(flops / 1e9)}`;
  return fusedFlops === null ? plain : `fused ${short(fusedFlops / 1e9)} · ${plain}`;
}

function peaks({ flops, fusedFlops }: MachinePeak): number[] {
  return fusedFlops === null ? [flops] : [flops, fusedFlops];
}

function numbers(measurement: CodeMeasurement, simulated: number | null): HTMLElement {
  const { seconds, repeats, operations, bytes, rate, peak, clockStep, isolated } = measurement;
  const intensity = operations / bytes;
  const memory = roof(intensity, peak.memoryBandwidth, peakOf(measurement));
  const spread = `${timing(Math.min(...repeats))} – ${timing(Math.max(...repeats))}`;
  const count = repeats.length;
  const gflops = (value: number): string => `${short(value / 1e9)} GFLOPS`;
  const kernel: [string, string][] = [
    [`Time, median of ${count}`, timing(seconds)],
    ["Fastest – slowest", spread],
    ["Operations", counted(operations)],
    ["Arguments", `${counted(bytes)}B`],
    ["Rate", operations ? gflops(rate) : `${short(bytes / seconds / 1e9)} GB/s`],
  ];
  if (operations) {
    kernel.push(
      ["Share of the peak", `${Math.round((100 * rate) / peakOf(measurement))} %`],
      ["Operations per byte", short(intensity)],
      ["What memory allows", gflops(memory)],
    );
    if (simulated !== null)
      kernel.push(["Operations per byte moved, small cache", short(simulated)]);
  }
  const machine: [string, string][] = [
    [`Peak, ${peak.dtype}`, gflops(peak.flops)],
    ["Peak, fused", peak.fusedFlops === null ? "not here" : gflops(peak.fusedFlops)],
    ["Copying memory", `${short(peak.memoryBandwidth / 1e9)} GB/s`],
    ["Copying in the cache", `${short(peak.cacheBandwidth / 1e9)} GB/s`],
    ["Step of the clock", timing(clockStep)],
    ["Isolated page", isolated === null ? "no page" : isolated ? "yes" : "no"],
  ];
  return element(
    "div",
    { class: "roofline-tables" },
    table("This kernel", kernel),
    table("One thread of this tab", machine),
  );
}

function table(caption: string, rows: [string, string][]): HTMLElement {
  const body = element("tbody");
  for (const [name, value] of rows) {
    body.append(element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)));
  }
  return element("table", {}, element("caption", {}, caption), body);
}

function counted(value: number): string {
  const units: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  const [size, unit] = units.find(([least]) => value >= least) ?? [1, ""];
  return `${short(value / size)} ${unit}`.replace(/ $/, "\u00a0");
}

function scale([low, high]: [number, number], from: number, to: number): (value: number) => number {
  return (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
}

function node(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.append(text);
  return made;
}
