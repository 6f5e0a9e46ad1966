/** The blocks of a grid, the threads of a block, and the warps that they make up, as a picture. */

import { html, type TemplateResult } from "lit-html";
import { type GpuKernel, LANES } from "../../python/wire";
import { bytes, counted, whole } from "../format";
import { dataTable, range } from "../kit";

/** Cells drawn along an axis, at most. */
const MAX_ACROSS = 32;
const MAX_DOWN = 32;

export function launchPicture(kernel: GpuKernel): TemplateResult {
  const { grid, block, warps, threads } = kernel;
  const blocks = grid[0]! * grid[1]! * grid[2]!;
  return html`<div class="gpu-launch">
    ${cells(`Grid: ${counted(blocks, "block")}`, grid, () => 0, size(grid))}
    ${cells(
      `Block: ${counted(threads, "thread")} in ${counted(warps, "warp")}`,
      block,
      (x, y) => Math.floor((y * block[0]! + x) / LANES) % 2,
      size(block),
    )}</div>
  ${dataTable(
    "Axes and the loops bound to them",
    ["Axis", "Loop", "Extent"],
    kernel.axes.map(({ tag, loop, extent }) => [
      html`<code>${tag}</code>`,
      html`<code>${loop}</code>`,
      whole(extent),
    ]),
    { testId: "gpu-axes" },
  )}
  <p class="gpu-note">A warp is 32 threads that follow each other along x, then y, then z, and run
    the same instruction; shades in the block are warps.${
      kernel.sharedBytes ? ` A block has ${bytes(kernel.sharedBytes)} of shared memory.` : ""
    }</p>`;
}

/** "4 × 4", without axes of extent 1 at the end. */
function size(extents: readonly number[]): string {
  const last = extents.findLastIndex((extent) => extent > 1);
  return extents
    .slice(0, Math.max(1, last + 1))
    .map(whole)
    .join(" × ");
}

function cells(
  title: string,
  [x, y, z]: readonly number[],
  shade: (x: number, y: number) => number,
  text: string,
): TemplateResult {
  const [across, down] = [Math.min(x!, MAX_ACROSS), Math.min(y! * z!, MAX_DOWN)];
  const more = across < x! || down < y! * z!;
  return html`<figure class="gpu-cells"><figcaption><strong>${title}</strong> ${text}${
    more ? ", not all drawn" : ""
  }</figcaption>
    <div role="img" aria-label="${title}, ${text}" style="--across: ${across}">${range(
      across * down,
    ).map(
      (at) => html`<i class="shade-${shade(at % across, Math.floor(at / across))}"></i>`,
    )}</div></figure>`;
}
