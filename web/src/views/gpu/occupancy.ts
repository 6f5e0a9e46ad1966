/** What fits on a multiprocessor of a GPU, and how fast the GPU can be at best. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import type { GpuKernel, GpuOccupancy } from "../../python/wire";
import { GFLOPS, roof } from "../code/roofline";
import { bytes, gflops, large, short, whole } from "../format";
import { dataTable } from "../kit";
import { legend, type Plot, path } from "../plot";

/** What limits the blocks at a time: the tightest first. */
export function occupancyTable(kernel: GpuKernel, of: GpuOccupancy): TemplateResult {
  const uses: Record<string, string> = {
    warps: `${whole(kernel.warps)} of a block, ${of.most} at most`,
    blocks: "at most",
    registers: `${whole(of.registers)} of a thread`,
    "shared memory": `${bytes(kernel.sharedBytes)} of a block`,
  };
  return html`<div class="gpu-meter" role="img" aria-label="${of.warps} of ${of.most} warps">
      <i style="--share: ${(100 * of.warps) / of.most}%"></i></div>
    ${dataTable(
      "Blocks at a time",
      ["Limit", "What is used", "Blocks at a time"],
      of.limits.map(({ name, blocks }) => [name, uses[name] ?? "", whole(blocks)]),
      { testId: "gpu-limits" },
    )}`;
}

/** Operations for each byte: of the arrays, at best, and of all transactions, without a cache. */
export function intensities({ operations, argumentBytes, movedBytes }: GpuKernel) {
  if (!operations || !argumentBytes || !movedBytes) return null;
  return { best: operations / argumentBytes, moved: operations / movedBytes };
}

/** The roofs of a GPU, and what the kernel can reach under them. */
export function rooflineOf(plot: Plot, kernel: GpuKernel, of: GpuOccupancy): unknown {
  const intensity = intensities(kernel);
  if (!intensity) return nothing;
  const { best, moved } = intensity;
  const rows = [
    ["Operations of a launch", large(kernel.operations!)],
    ["Bytes of its arrays", bytes(kernel.argumentBytes)],
    ["Bytes of all transactions", bytes(kernel.movedBytes)],
    ["Operations per byte of the arrays", short(best)],
    ["Operations per byte of transactions", short(moved)],
  ];
  const { peak, bandwidth } = of;
  if (peak === null || bandwidth === null)
    return html`<p class="gpu-note">The peak of this GPU is not in the table, so there is no roofline.</p>
      ${dataTable("Arithmetic intensity", [], rows)}`;
  const reach = (intensity: number): number => roof(intensity, bandwidth, peak);
  const limit = reach(moved) < peak ? "memory" : "arithmetic";
  const text = `Without a cache, ${limit} limits the kernel to ${gflops(reach(moved))}; if every byte were moved once, to ${gflops(reach(best))}. The peak is ${gflops(peak)}.`;
  const bend = peak / bandwidth;
  const x: [number, number] = [Math.min(moved, bend) / 3, Math.max(best, bend) * 3];
  return html`<p class="gpu-sentence" data-testid="gpu-intensity">${text}</p>
    <div class="roofline">${plot.chart(
      text,
      {
        x: { domain: x, log: true, title: "operations per byte" },
        y: { ...GFLOPS, domain: [reach(x[0]) / 2, peak * 2] },
      },
      (across, up) => svg`
        <path class="roof memory" d=${path([x[0], bend, x[1]].map((at) => [across(at), up(reach(at))] as const))}></path>
        <circle class="dot" cx=${across(moved)} cy=${up(reach(moved))} r="5.5"></circle>
        <circle class="dot simulated" cx=${across(best)} cy=${up(reach(best))} r="4.5"></circle>`,
    )}${legend(["trial", "by all transactions"], ["simulated", "if every byte is moved once"], ["memory", "roof"])}</div>
    ${dataTable("Arithmetic intensity", [], rows, { testId: "gpu-intensity-table" })}`;
}
