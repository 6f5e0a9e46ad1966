/**
 * The roofline: what a kernel reaches, under the roofs that arithmetic and memory put over it.
 *
 * Across goes how many operations a kernel does for each byte of its arguments, upwards how many
 * a second; both axes are logarithmic. A table stands beside it.
 */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import type { CodeMeasurement, MachinePeak } from "../../python/wire";
import { gflops, large, short, timing } from "../format";
import { dataTable } from "../kit";
import { type Frame, legend, type Plot, path, type Scale } from "../plot";

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

/** The axis of rates. */
export const GFLOPS = {
  log: true,
  title: "GFLOPS",
  text: (rate: number): string => short(rate / 1e9),
};

/** The drawing of a measured kernel and its tables. */
export function roofline(plot: Plot, measured: Measured): TemplateResult {
  const { name, measurement, simulated } = measured;
  const { peak, operations, bytes, rate } = measurement;
  const point = { intensity: operations / bytes, rate };
  const range = axes(point, peak, simulated === null ? [] : [simulated]);
  const label = `${sentence(name, measurement)} The table has the numbers.`;
  const drawing = (): TemplateResult =>
    html`${plot.chart(
      label,
      {
        x: { domain: range.x, log: true, title: "operations per byte of the arguments" },
        y: { ...GFLOPS, domain: range.y },
      },
      (x, y, frame) => marks(measured, range.x, point, { x, y, frame }),
    )}${legend(
      ["trial", "this kernel"],
      ...(simulated === null ? [] : [["simulated", "per byte moved in the cache model"] as const]),
      ["memory", "memory roof"],
      ["cache", "cache roof"],
    )}`;
  return html`<div class="roofline">${operations ? drawing() : nothing}${numbers(measured)}</div>`;
}

function marks(
  { measurement, simulated }: Measured,
  [low, high]: [number, number],
  { intensity, rate }: Point,
  { x, y, frame }: { x: Scale; y: Scale; frame: Frame },
): TemplateResult {
  const { peak } = measurement;
  const top = peakOf(measurement);
  const line = (kind: string, bandwidth: number, height: number, from = low): unknown => {
    const bend = Math.min(Math.max(height / bandwidth, from), high);
    const points = [from, bend, high].map((at) => [x(at), y(roof(at, bandwidth, height))] as const);
    return svg`<path class="roof ${kind}" d=${path(points)}></path>`;
  };
  const heights = [peak.flops, ...(peak.fusedFlops === null ? [] : [peak.fusedFlops])];
  const others = heights.filter((height) => height !== top);
  const [across, up] = [x(intensity), y(rate)];
  const left = across > (frame.left + 2 * frame.right) / 3;
  const drop = (toX: number, toY: number): unknown =>
    svg`<line class="drop" x1=${across} x2=${toX} y1=${up} y2=${toY}></line>`;
  return svg`
    ${others.map((height) => line("other", peak.memoryBandwidth, height, Math.min(height, top) / peak.memoryBandwidth))}
    ${line("cache", peak.cacheBandwidth, top)}${line("memory", peak.memoryBandwidth, top)}
    ${drop(across, y(roof(intensity, peak.cacheBandwidth, top)))}
    <text class="roof-label" x=${frame.right} y=${y(Math.max(...heights)) - 6}
      text-anchor="end">${roofLabel(peak)}</text>
    ${
      simulated === null
        ? nothing
        : svg`${drop(x(simulated), up)}
            <circle class="dot simulated" cx=${x(simulated)} cy=${up} r="4.5"></circle>`
    }
    <circle class="dot" cx=${across} cy=${up} r="5.5"></circle>
    <text class="dot-label" x=${across + (left ? -9 : 9)} y=${up + 17}
      text-anchor=${left ? "end" : "start"}>${gflops(rate)}</text>`;
}

/** What was measured, in one sentence. */
export function sentence(name: string, measurement: CodeMeasurement): string {
  const { seconds, rate, operations, call } = measurement;
  // Of what little is left besides, nothing can be said.
  const calling = 2 * call > seconds ? ` Most of that is the call itself (${timing(call)}).` : "";
  if (!operations) return `${name} takes ${timing(seconds)} and does no arithmetic.${calling}`;
  const share = Math.round((100 * rate) / peakOf(measurement));
  return `${name} takes ${timing(seconds)}: ${gflops(rate)}, ${share} % of the peak of ${gflops(peakOf(measurement))}.${calling}`;
}

/** Both peaks in one line: side by side their labels would lie on each other, or on a roof. */
function roofLabel({ flops, fusedFlops }: MachinePeak): string {
  const plain = `multiply, add ${short(flops / 1e9)}`;
  return fusedFlops === null ? plain : `fused ${short(fusedFlops / 1e9)} · ${plain}`;
}

function numbers({ measurement, simulated }: Measured): TemplateResult {
  const { seconds, repeats, operations, bytes, rate, peak, call, clockStep, isolated } =
    measurement;
  const intensity = operations / bytes;
  const bandwidth = (value: number): string => `${short(value / 1e9)} GB/s`;
  const kernel = [
    [`Time, median of ${repeats.length}`, timing(seconds)],
    ["Fastest – slowest", `${timing(Math.min(...repeats))} – ${timing(Math.max(...repeats))}`],
    ["Operations", large(operations)],
    ["Arguments", large(bytes, "B")],
    ["Rate", operations ? gflops(rate) : bandwidth(bytes / seconds)],
  ];
  if (operations)
    kernel.push(
      ["Share of the peak", `${Math.round((100 * rate) / peakOf(measurement))} %`],
      ["Operations per byte", short(intensity)],
      ["Memory-bound limit", gflops(roof(intensity, peak.memoryBandwidth, peakOf(measurement)))],
    );
  if (operations && simulated !== null)
    kernel.push(["Operations per byte moved, cache model", short(simulated)]);
  return html`<div class="roofline-tables">
    ${dataTable("This kernel", [], kernel)}
    ${dataTable(
      "One thread of this tab",
      [],
      [
        [`Peak, ${peak.dtype}`, gflops(peak.flops)],
        ["Peak, fused", peak.fusedFlops === null ? "not available" : gflops(peak.fusedFlops)],
        ["Memory bandwidth", bandwidth(peak.memoryBandwidth)],
        ["Cache bandwidth", bandwidth(peak.cacheBandwidth)],
        ["Call of an empty function", timing(call)],
        ["Timer resolution", timing(clockStep)],
        ["Isolated page", isolated === null ? "no page" : isolated ? "yes" : "no"],
      ],
    )}
  </div>`;
}
