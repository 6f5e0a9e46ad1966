/** The tables: hits of every subscript, and the accesses around the one that is shown. */

import { html, nothing, type TemplateResult } from "lit-html";
import type { AccessFigures, AccessReport, AccessResult } from "../../python/wire";
import { bytes, percent, whole } from "../format";
import { dataTable, range } from "../kit";
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
  const accesses = sites.map((site, index) => ({ site, of: rows[index]! }));
  return dataTable(
    "Hits and misses of every subscript of the program",
    ["Access, stride", "Accesses", "Hits", "Misses", "Hit rate", "Traffic"],
    accesses
      .filter(({ of }) => of.accesses)
      .map(({ site, of }) => {
        const kind = site.write ? "write" : "read";
        return html`<tr data-buffer=${buffers[site.buffer]!.name} data-kind=${kind}>
          <th scope="row"><code>${site.text}</code> ${badge(site)}
            <span class="cell-note">${kind}, line ${site.line}</span></th>${figures(of)}</tr>`;
      }),
    {
      testId: "cache-table",
      foot: [
        ["All", total] as const,
        ...(other ? [[`All of ${otherTitle}`, other] as const] : []),
      ].map(([name, of]) => html`<tr><th scope="row">${name}</th>${figures(of)}</tr>`),
    },
  );
}

function figures({ accesses, hits, first, bytes: traffic }: AccessFigures): TemplateResult[] {
  const misses = accesses - hits;
  const note = `${first === misses ? "all" : whole(first)} first touches`;
  const cells: [string, string, string?][] = [
    ["accesses", whole(accesses)],
    ["hits", whole(hits)],
    ["misses", whole(misses), first ? note : ""],
    ["rate", percent(hits, accesses)],
    ["bytes", bytes(traffic)],
  ];
  return cells.map(
    ([name, text, below]) =>
      html`<td data-figure=${name}>${text}${
        below ? html`<span class="cell-note">${below}</span>` : nothing
      }</td>`,
  );
}

/** The accesses before and after the position of a replay, with what became of them. */
export function accessTable(replay: Replay): TemplateResult {
  const from = Math.max(0, Math.min(replay.position - ROWS_AROUND, replay.count - 2 * ROWS_AROUND));
  const rows = range(Math.min(2 * ROWS_AROUND, replay.count - from)).map((index) => {
    const at = from + index;
    const { what, when, line, hit } = accessParts(replay, at);
    const cells = [what, when, line, hit ? "hit" : "miss"];
    return html`<tr aria-current=${at === replay.position - 1 ? "step" : nothing}><th scope="row"
      >${whole(at + 1)}</th>${cells.map((cell) => html`<td class="text">${cell}</td>`)}</tr>`;
  });
  const heads = ["No.", "Access", "Loops", "Line", "Cache"];
  return dataTable("The accesses around the one shown", heads, rows, { testId: "access-steps" });
}

/** The last access of a replay as a sentence. */
export function accessSentence(replay: Replay): string {
  const { position, count } = replay;
  if (!position) return `Nothing is touched yet; ${whole(count)} accesses follow.`;
  const { what, when, line, hit, evicted } = accessParts(replay, position - 1);
  const outcome = hit ? `a hit in line ${line}` : `a miss; line ${line} is fetched${evicted}`;
  return `Access ${whole(position)} of ${whole(count)}: ${what}${when ? ` at ${when}` : ""}: ${outcome}.`;
}

function accessParts(replay: Replay, at: number) {
  const { accesses, hits, sites, buffers } = replay;
  const site = sites[accesses.site[at]!]!;
  const { name, shape } = buffers[site.buffer]!;
  const index = indices(shape, accesses.element[at]!).join(", ");
  const evicted = hits.evicted[at]!;
  const loops = iterationsOf(site.loops, accesses.point[at]!);
  return {
    what: `${site.write ? "writes" : "reads"} ${name}[${index}]`,
    when: loops.map(([loop, value]) => `${loop}=${value}`).join(", "),
    line: replay.lineOf(at),
    hit: hits.hit[at] === 1,
    evicted: evicted >= 0 ? `, line ${evicted} is evicted` : "",
  };
}
