/** Which thread fetches which element of a shared buffer. */

import { html, type TemplateResult } from "lit-html";
import { type GpuFetch, type GpuKernel, LANES } from "../../python/wire";
import { dataTable, folded, range } from "../kit";

const MAX_ROWS = 32;
const MAX_COLUMNS = 64;

/** The elements as cells, coloured by warp; a thread's number where there is room. */
export function fetchPicture(fetch: GpuFetch, kernel: GpuKernel): TemplateResult {
  const { columns, threads } = fetch;
  const rows = Math.ceil(threads.length / columns);
  const [down, across] = [Math.min(rows, MAX_ROWS), Math.min(columns, MAX_COLUMNS)];
  const cut = down < rows || across < columns;
  return html`<figure class="gpu-fetch" data-testid="gpu-fetch">
    <figcaption>${fetch.sentence}</figcaption>
    <div class="gpu-tile" role="img" aria-label="Which warp fetches which element of ${fetch.buffer}"
      style="--across: ${across}">${range(down * across).map((at) => {
        const index = Math.floor(at / across) * columns + (at % across);
        const thread = threads[index] ?? -1;
        return html`<i class=${thread < 0 ? "is-empty" : `hue-${Math.floor(thread / LANES) % 6}`}
          title=${thread < 0 ? "stored by no thread" : describe(fetch, kernel, index)}></i>`;
      })}</div>
    <p class="gpu-note">Each cell is an element of <code>${fetch.buffer}</code> (${rows} × ${columns}${
      cut ? ", not all drawn" : ""
    }), coloured by the warp that stores it.</p>
    ${firstElements(fetch, kernel)}
  </figure>`;
}

/** Who fetches the first elements, for those who cannot see or point at the picture. */
function firstElements(fetch: GpuFetch, kernel: GpuKernel): TemplateResult {
  const rows = range(Math.min(64, fetch.threads.length)).map((at) => {
    const thread = fetch.threads[at]!;
    if (thread < 0) return [place(fetch, at), "none", "–", "–"];
    const warp = Math.floor(thread / LANES);
    return [place(fetch, at), threadIndex(thread, kernel.block), warp, fetch.iterations[at]! + 1];
  });
  const heads = ["Element", "Thread", "Warp", "Step"];
  const table = dataTable(`Who fetches ${fetch.buffer}`, heads, rows);
  return folded("The first elements as a table", table);
}

function describe(fetch: GpuFetch, kernel: GpuKernel, index: number): string {
  const thread = fetch.threads[index]!;
  return `${place(fetch, index)}: thread ${threadIndex(thread, kernel.block)}, step ${fetch.iterations[index]! + 1}`;
}

function place({ columns }: GpuFetch, index: number): string {
  return `[${Math.floor(index / columns)}, ${index % columns}]`;
}

/** "(3, 1)" along x and y; z where there is one. */
export function threadIndex(thread: number, [x, y, z]: readonly number[]): string {
  const index = [thread % x!, Math.floor(thread / x!) % y!, Math.floor(thread / (x! * y!))];
  return `(${index.slice(0, z! > 1 ? 3 : 2).join(", ")})`;
}
