/** The tables: hits of every subscript, and the accesses around the one that is shown. */

import { html, nothing, type TemplateResult } from "lit-html";
import type { AccessFigures, AccessReport, AccessResult } from "../../python/wire";
import { short } from "../format";
import type { Replay } from "./replay";
import { badgeText, indices, iterationsOf } from "./report";

const ROWS_AROUND = 7;

/** A stride as a badge, coloured by how kind it is to a cache. */
export function badge(site: { badge: string; loop: string | null }): TemplateResult {
  return html`<span class="stride stride-${site.badge.split(" ")[0]!}">${badgeText(site)}</span>`;
}

/** Hits and misses of every subscript in a cache, and the sums of the program compared with. */
export function cacheTable(
  { sites, buffers }: Pick<AccessReport, "sites" | "buffers">,
  { rows, total, other }: Pick<AccessResult, "rows" | "total" | "other">,
  otherTitle: string,
): TemplateResult {
  const row = (site: AccessReport["sites"][number], index: number): unknown => {
    if (!rows[index]!.accesses) return nothing;
    const kind = site.write ? "write" : "read";
    return html`<tr data-buffer=${buffers[site.buffer]!.name} data-kind=${kind} data-line=${site.line}>
      <th scope="row"><span class="cell-access"><code>${site.text}</code>${badge(site)}</span>
        <span class="cell-note">${kind}, line ${site.line}</span></th>${figures(rows[index]!)}</tr>`;
  };
  const sum = (name: string, of: AccessFigures): TemplateResult =>
    html`<tr><th scope="row">${name}</th>${figures(of)}</tr>`;
  const heads = ["Access, stride", "Accesses", "Hits", "Misses", "Hit rate", "Moved"];
  return html`<table class="cache-table" data-testid="cache-table">
    <caption class="visually-hidden">Hits and misses of every subscript of the program</caption>
    ${head(heads)}<tbody>${sites.map(row)}</tbody>
    <tfoot>${sum("All", total)}${other ? sum(`All of ${otherTitle}`, other.total) : nothing}</tfoot>
  </table>`;
}

function head(names: string[]): TemplateResult {
  return html`<thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>`;
}

function figures({ accesses, hits, first, bytes }: AccessFigures): TemplateResult[] {
  const misses = accesses - hits;
  const touches = `${first === misses ? "all" : counted(first)} first touches`;
  const note = first ? html`<span class="cell-note">${touches}</span>` : nothing;
  const cells: [string, string, unknown][] = [
    ["accesses", counted(accesses), nothing],
    ["hits", counted(hits), nothing],
    ["misses", counted(misses), note],
    ["rate", rate(hits, accesses), nothing],
    ["bytes", size(bytes), nothing],
  ];
  return cells.map(([name, text, below]) => html`<td data-figure=${name}>${text}${below}</td>`);
}

/** The accesses before and after the position of a replay, with what became of them. */
export function accessTable(replay: Replay): TemplateResult {
  const from = Math.max(0, Math.min(replay.position - ROWS_AROUND, replay.count - 2 * ROWS_AROUND));
  const to = Math.min(replay.count, from + 2 * ROWS_AROUND);
  const rows = Array.from({ length: to - from }, (_, index) => {
    const at = from + index;
    const { what, when, line, hit } = accessParts(replay, at);
    const cells = [what, when, line, hit ? "hit" : "miss"];
    return html`<tr aria-current=${at === replay.position - 1 ? "step" : nothing}><th scope="row"
      >${counted(at + 1)}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  });
  return html`<table class="cache-table" data-testid="access-steps">
    <caption class="visually-hidden">The accesses around the one shown</caption>
    ${head(["No.", "Access", "Loops", "Line", "Cache"])}<tbody>${rows}</tbody>
  </table>`;
}

/** The last access of a replay as a sentence. */
export function accessSentence(replay: Replay): string {
  const { position, count } = replay;
  if (!position) return `Nothing is touched yet; ${counted(count)} accesses follow.`;
  const { what, when, line, hit, evicted } = accessParts(replay, position - 1);
  const outcome = hit ? `a hit in line ${line}` : `a miss; line ${line} is fetched${evicted}`;
  return `Access ${counted(position)} of ${counted(count)}: ${what}${when ? ` at ${when}` : ""}: ${outcome}.`;
}

function accessParts(
  replay: Replay,
  at: number,
): { what: string; when: string; line: number; hit: boolean; evicted: string } {
  const { accesses, hits, sites, buffers } = replay;
  const site = sites[accesses.site[at]!]!;
  const { name, shape } = buffers[site.buffer]!;
  const index = indices(shape, accesses.element[at]!).join(", ");
  const out = hits.evicted[at]!;
  return {
    what: `${site.write ? "writes" : "reads"} ${name}[${index}]`,
    when: iterationsOf(site.loops, accesses.point[at]!)
      .map(([loop, value]) => `${loop}=${value}`)
      .join(", "),
    line: replay.lineOf(at),
    hit: hits.hit[at] === 1,
    evicted: out >= 0 ? `, line ${out} is evicted` : "",
  };
}

function counted(value: number): string {
  return value.toLocaleString("en");
}

/** A share in percent; only all is 100. */
export function rate(hits: number, accesses: number): string {
  if (!accesses) return "–";
  const percent = (100 * hits) / accesses;
  return `${hits < accesses && percent > 99.9 ? "99.9" : short(Math.round(percent * 10) / 10)} %`;
}

/** Bytes with the unit that suits them. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${short(bytes / 1024)} KiB` : `${short(bytes / 1024 ** 2)} MiB`;
}
