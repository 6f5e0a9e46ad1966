/** The pieces that views are made of; docs/add/view.md says how they go together. */

import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { html, nothing, render, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { keyed } from "lit-html/directives/keyed.js";
import { live } from "lit-html/directives/live.js";
import { element } from "../dom";
import { highlightedLines } from "../highlight";

/** Show `template` in `host`, again whenever a signal that it reads changes; then do what is to be
 * done to the elements themselves, such as scrolling. */
export function reactive<T extends HTMLElement>(
  host: T,
  template: () => unknown,
  after?: () => void,
): T {
  effect(() => {
    render(template(), host);
    if (after) untracked(after);
  });
  return host;
}

/** Say of an element whether its content is on its way. */
export function markBusy(host: HTMLElement, busy: boolean): void {
  if (busy) host.setAttribute("aria-busy", "true");
  else host.removeAttribute("aria-busy");
}

/** A part of a template that is made anew when `key` changes, and left alone until then. */
export function once(key: unknown, make: () => unknown): unknown {
  return guard([key], () => keyed(key, make()));
}

/** Follows `source` once a frame at most: for what takes long to draw while a key is held. */
export function perFrame<T>(source: ReadonlySignal<T>): ReadonlySignal<T> {
  const shown = signal(source.peek());
  let frame = 0;
  effect(() => {
    void source.value;
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      shown.value = source.peek();
    });
  });
  return shown;
}

/** Work that waits until its panel is in sight. */
export class Pending {
  private due = false;

  constructor(
    private readonly panel: HTMLElement,
    private readonly work: () => void,
  ) {}

  ask(): void {
    this.due = true;
    this.look();
  }

  drop(): void {
    this.due = false;
  }

  /** Do it, if it is due and can be seen. */
  look(): void {
    if (!this.due || this.panel.hidden) return;
    this.due = false;
    this.work();
  }
}

export function viewPanel(id: string, title: string): HTMLElement {
  return element("div", {
    class: "view",
    id: `view-${id}`,
    role: "tabpanel",
    "data-testid": `view-${id}`,
    "aria-labelledby": `tab-${id}`,
    "aria-label": title,
  });
}

/** What a view says while it has nothing to show. */
export function emptyNote(title: string, text: string): TemplateResult {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p></div>`;
}

export interface Option {
  id: string;
  title: string;
  disabled?: boolean;
  hidden?: boolean;
}

interface Choice {
  label: string;
  options: Option[];
  /** Options under a heading of their own. */
  group?: { label: string; options: Option[] } | null;
  value: string;
  onChange: (id: string) => void;
  /** Of the select, which has it as its test id, too. */
  id?: string;
  testId?: string;
  hidden?: boolean;
  disabled?: boolean;
}

/** A labelled choice; hidden where there is but one, unless told otherwise. */
export function choice(of: Choice): TemplateResult {
  const { label, options, value, onChange, id = nothing, testId = of.id ?? nothing, group } = of;
  return html`<label class="field" for=${id} ?hidden=${of.hidden ?? options.length < 2}
    >${label}<select id=${id} data-testid=${testId} aria-label=${of.id ? nothing : label}
      ?disabled=${of.disabled} @change=${(event: Event) => onChange(fieldValue(event))}>
      ${optionList(options, value)}
      ${group ? html`<optgroup label=${group.label}>${optionList(group.options, value)}</optgroup>` : nothing}
    </select></label>`;
}

/** Options of a select, with `value` chosen whatever the reader has chosen meanwhile. */
export function optionList(options: Option[], value: string): TemplateResult[] {
  return options.map(
    ({ id, title, disabled, hidden }) => html`<option
      value=${id} ?disabled=${disabled} ?hidden=${hidden} .selected=${live(id === value)}
    >${title}</option>`,
  );
}

/** A table of numbers, or of a term and numbers. */
export function dataTable(
  caption: string,
  heads: unknown[],
  rows: (string | number)[][],
  { testId, terms = 0 }: { testId?: string; terms?: number } = {},
): TemplateResult {
  const row = (cells: (string | number)[]): TemplateResult =>
    html`<tr>${cells.map((cell, at) => html`<td class=${at < terms ? "" : "number"}>${cell}</td>`)}</tr>`;
  return html`<div class="table-box"><table class="trials" data-testid=${testId ?? nothing}>
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
    <tbody>${rows.map(row)}</tbody>
  </table></div>`;
}

/** The value of the field that an event is of. */
export function fieldValue(event: Event): string {
  return (event.currentTarget as HTMLInputElement | HTMLSelectElement).value;
}

/** Arrow keys, Home and End in a list whose items are known by rising numbers. */
export function onArrows(
  event: KeyboardEvent,
  items: readonly number[],
  current: number,
  go: (item: number) => void,
): void {
  const before = items.findLast((item) => item < current);
  const after = items.find((item) => item > current);
  const targets: Record<string, number | undefined> = {
    ArrowUp: before,
    ArrowLeft: before,
    ArrowDown: after,
    ArrowRight: after,
    Home: items[0],
    End: items.at(-1),
  };
  if (!(event.key in targets)) return;
  event.preventDefault();
  const target = targets[event.key];
  if (target !== undefined) go(target);
}

/** The numbers from 0 to `count`, without it. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Scroll `box` alone, and only as far as needed. */
export function scrollWithin(box: Element, item: Element, margin = 8): void {
  const outer = box.getBoundingClientRect();
  const inner = item.getBoundingClientRect();
  if (inner.top < outer.top + margin) box.scrollTop -= outer.top + margin - inner.top;
  else if (inner.bottom > outer.bottom - margin)
    box.scrollTop += inner.bottom - outer.bottom + margin;
}

/** Python on one line, highlighted. */
export function python(text: string): DocumentFragment {
  return highlightedLines(text)[0]!;
}

/** A count and its noun: "1 line", "2 lines". */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Copy a text, and say in a toast whether that was allowed. */
export async function copyAndTell(text: string, toast: (message: string) => void): Promise<void> {
  toast((await copyText(text)) ? "Copied" : "The browser does not allow copying here");
}
