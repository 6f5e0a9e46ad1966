/**
 * The roofline: what a kernel reaches, under the roofs that arithmetic and memory put over it.
 *
 * Across goes how many operations a kernel does for each byte of its arguments, upwards how many
 * a second; both axes are logarithmic. A table stands beside it.
 */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import type { CodeMeasurement, MachinePeak } from "../../python/wire";
import { short, timing } from "../format";
import { axes as drawAxes, legend, logarithmic, logTicks, type Plot } from "../plot";

export const HEIGHT = 230;

export interface Point {
  /** Operations a byte. */
  intensity: number;
  /** Operations a second. */
  rate: number;
}

/** A measured kernel; `simulated` is how many operations a byte of simulated traffic gets. */
export interface Measured {
  name: string;
  measurement: CodeMeasurement;
  simulated: number | null;
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

/** The drawing of a measured kernel and its tables. */
export function roofline(plot: Plot, measured: Measured): TemplateResult {
  const { name, measurement, simulated } = measured;
  const keys: [string, string][] = [["trial", "this kernel"]];
  if (simulated !== null) keys.push(["simulated", "per byte that the small cache moves"]);
  keys.push(["memory", "memory roof"], ["cache", "cache roof"]);
  const label = `${sentence(name, measurement)} The table has the numbers.`;
  const drawing = (): TemplateResult =>
    html`${plot.template(label, (width) => marks(measured, width))}${legend(...keys)}`;
  return html`<div class="roofline">
    ${measurement.operations ? drawing() : nothing}${numbers(measured)}
  </div>`;
}

function marks({ measurement, simulated }: Measured, width: number): TemplateResult {
  const { peak } = measurement;
  const point = { intensity: measurement.operations / measurement.bytes, rate: measurement.rate };
  const range = axes(point, peak, simulated === null ? [] : [simulated]);
  const frame = { left: 46, right: width - 14, top: 14, bottom: HEIGHT - 36 };
  const across = logarithmic(range.x, [frame.left, frame.right]);
  const upwards = logarithmic(range.y, [frame.bottom, frame.top]);
  const top = peakOf(measurement);
  const line = (kind: string, bandwidth: number, height: number, from = range.x[0]): unknown => {
    const bend = Math.min(Math.max(height / bandwidth, from), range.x[1]);
    const points = [from, bend, range.x[1]].map(
      (x) => `${across(x)},${upwards(roof(x, bandwidth, height))}`,
    );
    return svg`<polyline class="roof ${kind}" points=${points.join(" ")}></polyline>`;
  };
  const heights = [peak.flops, ...(peak.fusedFlops === null ? [] : [peak.fusedFlops])];
  const others = heights.filter((height) => height !== top);
  const [x, y] = [across(point.intensity), upwards(point.rate)];
  const cache = upwards(roof(point.intensity, peak.cacheBandwidth, top));
  const left = x > width * 0.6;
  const moved = simulated === null ? null : across(simulated);
  return svg`${drawAxes(
    frame,
    {
      scale: across,
      ticks: logTicks(range.x),
      text: short,
      title: "operations per byte of the arguments",
    },
    {
      scale: upwards,
      ticks: logTicks(range.y),
      text: (rate) => short(rate / 1e9),
      title: "GFLOPS",
    },
  )}
    ${others.map((height) =>
      line("other", peak.memoryBandwidth, height, Math.min(height, top) / peak.memoryBandwidth),
    )}
    ${line("cache", peak.cacheBandwidth, top)}${line("memory", peak.memoryBandwidth, top)}
    <line class="drop" x1=${x} x2=${x} y1=${y} y2=${cache}></line>
    <text class="roof-label" x=${frame.right} y=${upwards(Math.max(...heights)) - 6}
      text-anchor="end">${roofLabel(peak)}</text>
    ${
      moved === null
        ? nothing
        : svg`<line class="drop" x1=${x} x2=${moved} y1=${y} y2=${y}></line>
            <circle class="dot simulated" cx=${moved} cy=${y} r="4.5"></circle>`
    }
    <circle class="dot" cx=${x} cy=${y} r="5.5"></circle>
    <text class="dot-label" x=${x + (left ? -9 : 9)} y=${y + 17}
      text-anchor=${left ? "end" : "start"}>${short(point.rate / 1e9)} GFLOPS</text>`;
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

function numbers({ measurement, simulated }: Measured): TemplateResult {
  const { seconds, repeats, operations, bytes, rate, peak, clockStep, isolated } = measurement;
  const intensity = operations / bytes;
  const memory = roof(intensity, peak.memoryBandwidth, peakOf(measurement));
  const gflops = (value: number): string => `${short(value / 1e9)} GFLOPS`;
  const bandwidth = (value: number): string => `${short(value / 1e9)} GB/s`;
  const kernel: [string, string][] = [
    [`Time, median of ${repeats.length}`, timing(seconds)],
    ["Fastest – slowest", `${timing(Math.min(...repeats))} – ${timing(Math.max(...repeats))}`],
    ["Operations", scaled(operations)],
    ["Arguments", `${scaled(bytes)}B`],
    ["Rate", operations ? gflops(rate) : bandwidth(bytes / seconds)],
  ];
  if (operations) {
    kernel.push(
      ["Share of the peak", `${Math.round((100 * rate) / peakOf(measurement))} %`],
      ["Operations per byte", short(intensity)],
      ["Memory-bound limit", gflops(memory)],
    );
    if (simulated !== null)
      kernel.push(["Operations per byte moved, small cache", short(simulated)]);
  }
  return html`<div class="roofline-tables">
    ${table("This kernel", kernel)}
    ${table("One thread of this tab", [
      [`Peak, ${peak.dtype}`, gflops(peak.flops)],
      ["Peak, fused", peak.fusedFlops === null ? "not here" : gflops(peak.fusedFlops)],
      ["Memory bandwidth", bandwidth(peak.memoryBandwidth)],
      ["Cache bandwidth", bandwidth(peak.cacheBandwidth)],
      ["Timer resolution", timing(clockStep)],
      ["Isolated page", isolated === null ? "no page" : isolated ? "yes" : "no"],
    ])}
  </div>`;
}

function table(caption: string, rows: [string, string][]): TemplateResult {
  return html`<table><caption>${caption}</caption><tbody>${rows.map(
    ([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`,
  )}</tbody></table>`;
}

function scaled(value: number): string {
  const units: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  const [size, unit] = units.find(([least]) => value >= least) ?? [1, ""];
  return `${short(value / size)} ${unit}`.replace(/ $/, "\u00a0");
}
