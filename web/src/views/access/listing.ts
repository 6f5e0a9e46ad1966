/** The program's text, with the strides of its accesses below the lines that make them. */

import { html, nothing, type TemplateResult } from "lit-html";
import { highlightedLines } from "../../highlight";
import type { AccessReport } from "../../python/wire";
import { once } from "../kit";
import { badge } from "./tables";

/** The listing; `current` is the line of the last access. */
export function badgedListing(report: AccessReport, current: number | null): TemplateResult {
  const numbers = report.lines.map((_, index) => index + 1);
  const texts = (): DocumentFragment[] => highlightedLines(report.lines.join("\n"));
  let highlighted: DocumentFragment[] | null = null;
  const line = (number: number): TemplateResult => html`<span
    class="access-line ${number === current ? "is-current" : ""}">${once(report, () => {
      highlighted ??= texts();
      return html`<span class="access-text">${highlighted[number - 1]}</span>${badges(report, number)}`;
    })}</span>`;
  return html`<pre class="access-code" tabindex="0" role="group" data-testid="access-code"
    aria-label="The program that ran, with the strides of its accesses"><code>${numbers.map(line)}</code></pre>`;
}

function badges({ lines, sites, buffers }: AccessReport, line: number): unknown {
  // A value that is read and written at one place needs one badge.
  const shown = new Map(
    sites
      .filter((site) => site.line === line)
      .map((site) => [`${buffers[site.buffer]!.name} ${site.badge} ${site.loop}`, site]),
  );
  if (!shown.size) return nothing;
  const indent = lines[line - 1]!.search(/\S|$/);
  return html`<span class="line-badges" .style=${`--indent: ${indent}`}>${[...shown.values()].map(
    (site) => html`<span class="line-badge">${buffers[site.buffer]!.name} ${badge(site)}</span>`,
  )}</span>`;
}
