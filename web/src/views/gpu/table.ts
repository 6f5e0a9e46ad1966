/** The accesses of a kernel and what they cost, one of which is chosen. */

import type { Signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import type { GpuSite } from "../../python/wire";
import { large, whole } from "../format";
import { dataTable, setting } from "../kit";

export const VERBS = { load: "read", store: "write", atomic: "update" } as const;

/** A row is chosen by the button in its first cell. */
export function accessTable(sites: readonly GpuSite[], chosen: Signal<number>): TemplateResult {
  const rows = sites.map((site, index) => {
    const { cost } = site;
    const where = site.shared ? "shared" : "global";
    const line = site.line === null ? "" : `, line ${site.line}`;
    return html`<tr aria-current=${index === chosen.value ? "true" : nothing} data-testid="gpu-access"
      data-buffer=${site.buffer} data-kind=${site.kind}>
      <th scope="row"><button class="gpu-pick" type="button" aria-pressed=${index === chosen.value}
        @click=${setting(chosen, index)}><code>${site.text}</code></button>
        <span class="cell-note">${VERBS[site.kind]}s ${where} memory${line}</span></th>
      <td data-figure="requests">${cost ? count(cost.requests) : "–"}</td>
      <td data-figure="each">${badge(site)}</td>
      <td data-figure="all">${cost ? count(site.shared ? cost.passes : cost.sectors) : "–"}${
        cost && !cost.exact ? html`<span class="cell-note">of a sample</span>` : nothing
      }</td>
      <td data-figure="ideal">${cost ? count(cost.ideal) : "–"}</td></tr>`;
  });
  return dataTable(
    "Accesses: what each costs, as transactions of 32 bytes with global memory, or passes through the banks of shared memory",
    ["Access", "Requests of warps", "One request", "In all", "Needed"],
    rows,
    { testId: "gpu-table" },
  );
}

/** What one request costs, coloured by whether it could cost less. */
function badge(site: GpuSite): TemplateResult {
  const { cost, shared } = site;
  if (!cost) return html`<span class="gpu-badge is-bad">depends on data</span>`;
  if (!cost.requests) return html`<span class="gpu-badge">never</span>`;
  const total = shared ? cost.passes : cost.sectors;
  const kind =
    total <= cost.ideal * 1.01 ? "is-good" : total < cost.ideal * 2.5 ? "is-fair" : "is-bad";
  return html`<span class="gpu-badge ${kind}">${costText(site)}</span>`;
}

export function costText({ cost, shared }: GpuSite): string {
  if (!cost) return "";
  const { least, most } = cost;
  if (shared) return most > 1 ? `${most}-way conflict` : "no conflict";
  const number = least === most ? `${most}` : `${least}–${most}`;
  return `${number} transaction${most === 1 ? "" : "s"}`;
}

function count(value: number): string {
  return value < 1e6 ? whole(Math.round(value)) : large(value);
}
