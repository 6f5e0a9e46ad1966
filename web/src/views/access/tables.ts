/** The tables: hits of every subscript, and the accesses around the one that is shown. */

import { element } from "../../dom";
import { short } from "../format";
import type { Replay } from "./replay";
import {
  type AccessFigures,
  type AccessReport,
  type AccessResult,
  badgeText,
  indices,
  turns,
} from "./report";

const ROWS_AROUND = 7;

/** A stride as a badge, coloured by how kind it is to a cache. */
export function badge(site: { badge: string; loop: string | null }): HTMLElement {
  const kind = site.badge.split(" ")[0]!;
  return element("span", { class: `stride stride-${kind}` }, badgeText(site));
}

/** Hits and misses of every subscript in a cache, and the sums of the program compared with. */
export function cacheTable(
  { sites, buffers }: Pick<AccessReport, "sites" | "buffers">,
  { rows, total, other }: Pick<AccessResult, "rows" | "total" | "other">,
  otherTitle: string,
): HTMLElement {
  const body = element("tbody");
  for (const [index, site] of sites.entries()) {
    const row = rows[index]!;
    if (!row.accesses) continue;
    const kind = site.write ? "write" : "read";
    const name = element(
      "th",
      { scope: "row" },
      element("span", { class: "cell-access" }, element("code", {}, site.text), badge(site)),
      element("span", { class: "cell-note" }, `${kind}, line ${site.line}`),
    );
    body.append(
      element(
        "tr",
        { "data-buffer": buffers[site.buffer]!.name, "data-kind": kind, "data-line": site.line },
        name,
        ...figures(row),
      ),
    );
  }
  const foot = element("tfoot", {}, sum("All", total));
  if (other) foot.append(sum(`All of ${otherTitle}`, other.total));
  return element(
    "table",
    { class: "cache-table", "data-testid": "cache-table" },
    element(
      "caption",
      { class: "visually-hidden" },
      "Hits and misses of every subscript of the program",
    ),
    element("thead", {}, head("Access, stride", "Accesses", "Hits", "Misses", "Hit rate", "Moved")),
    body,
    foot,
  );
}

function head(...names: string[]): HTMLElement {
  const row = element("tr");
  for (const name of names) row.append(element("th", { scope: "col" }, name));
  return row;
}

function sum(name: string, figuresOf: AccessFigures): HTMLElement {
  return element("tr", {}, element("th", { scope: "row" }, name), ...figures(figuresOf));
}

function figures({ accesses, hits, first, bytes }: AccessFigures): HTMLElement[] {
  const misses = accesses - hits;
  const cell = (text: string, name: string, note = ""): HTMLElement =>
    element(
      "td",
      { "data-figure": name },
      text,
      note ? element("span", { class: "cell-note" }, note) : null,
    );
  return [
    cell(counted(accesses), "accesses"),
    cell(counted(hits), "hits"),
    cell(
      counted(misses),
      "misses",
      first ? `${first === misses ? "all" : counted(first)} first touches` : "",
    ),
    cell(rate(hits, accesses), "rate"),
    cell(size(bytes), "bytes"),
  ];
}

/** The accesses before and after the position of a replay, with what became of them. */
export function accessTable(replay: Replay): HTMLElement {
  const body = element("tbody");
  const from = Math.max(0, Math.min(replay.position - ROWS_AROUND, replay.count - 2 * ROWS_AROUND));
  const to = Math.min(replay.count, from + 2 * ROWS_AROUND);
  for (let at = from; at < to; at++) {
    const { what, when, line, hit } = accessParts(replay, at);
    const here = at === replay.position - 1;
    body.append(
      element(
        "tr",
        { "aria-current": here ? "step" : null },
        element("th", { scope: "row" }, counted(at + 1)),
        element("td", {}, what),
        element("td", {}, when),
        element("td", {}, String(line)),
        element("td", {}, hit ? "hit" : "miss"),
      ),
    );
  }
  return element(
    "table",
    { class: "cache-table", "data-testid": "access-steps" },
    element("caption", { class: "visually-hidden" }, "The accesses around the one shown"),
    element("thead", {}, head("No.", "Access", "Loops", "Line", "Cache")),
    body,
  );
}

/** The last access of a replay as a sentence. */
export function accessSentence(replay: Replay): string {
  const { position, count } = replay;
  if (!position) return `Nothing is touched yet; ${counted(count)} accesses follow.`;
  const { what, when, line, hit, gone } = accessParts(replay, position - 1);
  const outcome = hit ? `a hit in line ${line}` : `a miss, so line ${line} is fetched${gone}`;
  return `Access ${counted(position)} of ${counted(count)}: ${what}${when ? ` at ${when}` : ""}: ${outcome}.`;
}

function accessParts(
  replay: Replay,
  at: number,
): { what: string; when: string; line: number; hit: boolean; gone: string } {
  const { accesses, hits, sites, buffers } = replay;
  const site = sites[accesses.site[at]!]!;
  const { name, shape } = buffers[site.buffer]!;
  const place = indices(shape, accesses.element[at]!).join(", ");
  const evicted = hits.evicted[at]!;
  return {
    what: `${site.write ? "writes" : "reads"} ${name}[${place}]`,
    when: turns(site.loops, accesses.point[at]!)
      .map(([loop, value]) => `${loop}=${value}`)
      .join(", "),
    line: replay.lineOf(at),
    hit: hits.hit[at] === 1,
    gone: evicted >= 0 ? ` and line ${evicted} goes` : "",
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
