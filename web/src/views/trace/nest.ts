/**
 * A loop nest as nested bars: how often each loop iterates and how, which loop it came from, and
 * what the blocks inside read and write. It is a nested list, so that it can be heard as well as seen.
 */

import { html, nothing, type TemplateResult } from "lit-html";
import type { NestBlock, NestEntry, NestLoop, NestRegion } from "../../python/wire";
import { counted } from "../format";
import "./nest.css";

const COLOURS = 6;

/** What a loop or block is called if the step did something to it. */
const CHANGES: Record<string, string> = { new: "new", moved: "moved", edited: "changed" };

/** Functions as nested lists. `marked` is whether changes are shown. */
export function nestList(entries: NestEntry[], marked: boolean): TemplateResult {
  const longest = Math.max(2, ...extents(entries));
  const item = (entry: NestEntry): TemplateResult => {
    const below = entry.body.length ? html`<ul>${entry.body.map(item)}</ul>` : nothing;
    if (entry.kind === "loop") return loop(entry, longest, marked ? entry.change : null, below);
    if (entry.kind === "block") return block(entry, marked ? entry.change : null, below);
    if (entry.kind === "statement")
      return html`<li class="nest-statement"><code>${entry.text}</code>${below}</li>`;
    const title = html`<div class="nest-title">${entry.name}</div>`;
    return html`<li class="nest-function">${entries.length > 1 ? title : nothing}${below}</li>`;
  };
  return html`<ul class="nest-list">${entries.map(item)}</ul>`;
}

/** Every loop's extent, where it is a number. */
function extents(entries: NestEntry[]): number[] {
  return entries.flatMap((entry) => {
    const extent = entry.kind === "loop" ? Number(entry.extent) : Number.NaN;
    return [...(Number.isFinite(extent) ? [extent] : []), ...extents(entry.body)];
  });
}

function loop(
  { name, extent, how, thread, annotations, origin, colours }: NestLoop,
  longest: number,
  change: string | null,
  below: unknown,
): TemplateResult {
  const [first, second = first] = colours;
  // A loop of 1024 iterations would dwarf all others, so that lengths go by powers of two.
  const share = Math.log2(Math.max(1, Number(extent) || longest)) / Math.log2(longest);
  return html`<li class="nest-loop is-${how}" data-loop=${name} data-extent=${extent} data-kind=${how}
    data-change=${change ?? nothing}
    .style=${`--origin: ${root(first)}; --also: ${root(second)}`}>
    <div class="nest-bar">
      <span class="nest-head">
        <code class="nest-name">${name}</code> <span class="nest-extent">${extent}</span>
        <span class="nest-how">${thread ?? how}</span>
        ${change ? html`<span class="nest-change">${CHANGES[change] ?? `now ${change}`}</span>` : nothing}
        <span class="nest-origin">${[origin, ...annotations].filter(Boolean).join("; ")}</span>
      </span>
      <span class="nest-gauge" aria-hidden="true" .style=${`--share: ${share}`}></span>
    </div>
    ${below}</li>`;
}

/** The colour of a loop of the program; `number` is undefined where nothing is known. */
function root(number: number | undefined): string {
  return number === undefined ? "var(--line-strong)" : `var(--hue-${number % COLOURS})`;
}

function block(
  { name, iterators, where, reads, writes, init, statement, buffers, annotations }: NestBlock,
  change: string | null,
  below: unknown,
): TemplateResult {
  const code = (text: string | null): unknown[] =>
    text === null ? [] : [html`<code>${text}</code>`];
  const bindings = iterators.map(
    ({ name: iterator, type, value }) =>
      html`<code>${iterator} = ${value}</code>${type === "spatial" ? "" : ` ${type}`}`,
  );
  const facts: [string, unknown[]][] = [
    ["reads", reads.map(region)],
    ["writes", writes.map(region)],
    ["binds", bindings],
    ["where", code(where)],
    ["init", code(init)],
    ["computes", code(statement)],
    ["allocates", buffers],
    ["annotations", annotations],
  ];
  return html`<li class="nest-block" data-block=${name} data-change=${change ?? nothing}>
    <div class="nest-bar">
      <span class="nest-head">
        <span>block <code class="nest-name">${name}</code></span>
        ${change ? html`<span class="nest-change">${CHANGES[change] ?? change}</span>` : nothing}
      </span>
      <dl class="nest-facts">${facts
        .filter(([, values]) => values.length)
        .map(([term, values]) => [
          html`<dt>${term}</dt>`,
          values.map((value) => html`<dd>${value}</dd>`),
        ])}</dl>
    </div>
    ${below}</li>`;
}

function region({ text, scope, elements }: NestRegion): TemplateResult {
  const size = elements === null || elements === 1 ? "" : ` ${counted(elements, "element")}`;
  const memory = scope === "" || scope === "global" ? "" : ` in ${scope} memory`;
  return html`<code>${text}</code>${size}${memory}`;
}
