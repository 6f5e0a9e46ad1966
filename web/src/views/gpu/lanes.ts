/**
 * The 32 lanes of a warp and the memory that they touch: sectors and lines of global memory, or the
 * banks of shared memory.
 */

import { html, nothing, type TemplateResult } from "lit-html";
import { BANKS, type GpuLanes, type GpuSite, LINE, SECTOR, WORD } from "../../python/wire";
import { counted, whole } from "../format";
import { dataTable, folded, groupBy, range } from "../kit";

/** Lines of memory drawn. */
const MAX_LINES = 8;

export function lanePicture(site: GpuSite, lanes: GpuLanes): TemplateResult {
  const isCounted = lanes.addresses.some((address) => address !== null);
  return html`<p class="gpu-sentence" role="status" data-testid="gpu-lanes">${lanes.sentence}</p>
    ${isCounted ? (site.shared ? banks(lanes) : lines(lanes)) : nothing}
    ${folded("The lanes as a table", laneTable(site, lanes))}`;
}

/** Which lanes touch each piece of `size` bytes, by the piece's number. */
export function lanesBy(lanes: GpuLanes, size: number): Map<number, number[]> {
  const touched: [piece: number, lane: number][] = [];
  lanes.addresses.forEach((address, lane) => {
    if (address === null) return;
    const last = Math.floor((address + lanes.bytes - 1) / size);
    for (let piece = Math.floor(address / size); piece <= last; piece += 1)
      touched.push([piece, lane]);
  });
  const groups = groupBy(touched, ([piece]) => piece);
  return new Map(
    [...groups]
      .sort(([a], [b]) => a - b)
      .map(([piece, touching]) => [piece, touching.map(([, lane]) => lane)]),
  );
}

/** The lines touched: four sectors each, those that are moved filled, and the words used in them. */
function lines(lanes: GpuLanes): TemplateResult {
  const sectors = lanesBy(lanes, SECTOR);
  const words = lanesBy(lanes, WORD);
  const touched = [...lanesBy(lanes, LINE).keys()];
  const rows = touched.slice(0, MAX_LINES);
  const label = `${counted(sectors.size, "sector")} in ${counted(touched.length, "line")} of 128 bytes`;
  return html`<div class="gpu-lines" role="img" aria-label=${label} data-testid="gpu-lines">
    ${rows.map(
      (line) =>
        html`<span class="gpu-address">${whole(line * LINE)}</span><div class="gpu-line">${range(
          LINE / SECTOR,
        ).map((part) => {
          const sector = line * (LINE / SECTOR) + part;
          const first = sector * (SECTOR / WORD);
          return html`<div class="gpu-sector ${sectors.has(sector) ? "is-moved" : ""}">${range(
            SECTOR / WORD,
          ).map((word) => {
            const by = words.get(first + word);
            return html`<i class=${by ? "is-used" : ""}>${by ? laneText(by) : ""}</i>`;
          })}</div>`;
        })}</div>`,
    )}</div>
    <p class="gpu-note">${
      touched.length > rows.length ? `The first ${rows.length} of ${label}. ` : `${label}. `
    }Boxes are sectors of 32 bytes, filled where they are moved; numbers are lanes. Addresses count
      from the beginning of the buffer.</p>`;
}

/** The banks: in each column the words that one bank has to give, one below the other. */
function banks(lanes: GpuLanes): TemplateResult {
  const words = lanesBy(lanes, WORD);
  const columns = groupBy([...words], ([word]) => word % BANKS);
  const most = Math.max(...[...columns.values()].map((column) => column.length));
  const shown = Math.min(most, BANKS);
  return html`<div class="gpu-banks" role="img" data-testid="gpu-banks"
    aria-label="32 banks; the busiest holds ${counted(most, "word")} of this access">${range(
      BANKS,
    ).map((bank) => {
      const column = columns.get(bank) ?? [];
      return html`<div class="gpu-bank"><b>${bank}</b>${range(shown).map((at) => {
        const entry = column[at];
        return html`<i class=${entry ? (at ? "is-conflict" : "is-used") : ""}>${
          entry ? laneText(entry[1]) : ""
        }</i>`;
      })}</div>`;
    })}</div>
    <p class="gpu-note">Columns are the 32 banks of 4 bytes; below each, the words of it that are used,
      with their lanes. A bank gives one word at a time, and lanes that read the same word share it.${
        lanes.bytes > WORD
          ? ` With ${lanes.bytes} bytes for each lane, a ${lanes.bytes > 8 ? "quarter" : "half"} of the warp is served at a time.`
          : ""
      }</p>`;
}

/** "3", or "0–31" and "0, 8…" where several lanes share a word. */
export function laneText(lanes: readonly number[]): string {
  const [first, last] = [lanes[0]!, lanes.at(-1)!];
  if (lanes.length === 1) return `${first}`;
  return last - first === lanes.length - 1 ? `${first}–${last}` : `${first}…`;
}

function laneTable(site: GpuSite, lanes: GpuLanes): TemplateResult {
  const size = site.shared ? WORD : SECTOR;
  const place = (address: number): string =>
    site.shared
      ? `${Math.floor(address / WORD) % BANKS}`
      : `${whole(Math.floor(address / SECTOR))}`;
  return dataTable(
    "The address of each lane",
    ["Lane", "Byte", site.shared ? "Bank" : "Sector"],
    lanes.addresses.map((address, lane) => [
      lane,
      address === null ? "takes no part" : whole(address),
      address === null ? "–" : `${place(address)}${lanes.bytes > size ? " and on" : ""}`,
    ]),
  );
}
