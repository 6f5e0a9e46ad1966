/** The pieces that views are made of; docs/add/view.md says how they go together. */

import { effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals-core";
import { html, nothing, render, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { keyed } from "lit-html/directives/keyed.js";
import { live } from "lit-html/directives/live.js";
import { ref } from "lit-html/directives/ref.js";
import { element, scrollWithin } from "../dom";
import { highlightedLines } from "../highlight";
import "./kit.css";

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

/** A part of a template that is made anew when `key` changes, and left alone until then. */
export function once(key: unknown, make: () => unknown): unknown {
  return guard([key], () => keyed(key, make()));
}

/**
 * Follows `source`, but not at once: after a change, or several, when `soon` calls what it is given,
 * or when `look` is called; and only while `panel` is in sight.
 */
export function paced<T>(
  source: ReadonlySignal<T>,
  soon: (look: () => void) => unknown,
  panel?: HTMLElement,
): ReadonlySignal<T> & { look: () => void } {
  const shown = signal(source.peek());
  let due = false;
  const look = (): void => {
    due = false;
    if (!panel || panel.offsetParent) shown.value = source.peek();
  };
  effect(() => {
    void source.value;
    if (!due) soon(look);
    due = true;
  });
  return Object.assign(shown, { look });
}

/** Follows `source` once a frame at most: for what takes long to draw while a key is held. */
export function perFrame<T>(source: ReadonlySignal<T>): ReadonlySignal<T> {
  return paced(source, requestAnimationFrame);
}

/** How wide an element is that has `host` in its template; hidden it keeps the width that it had. */
export function measuredWidth() {
  const width = signal(0);
  const observer = new ResizeObserver(([entry]) => {
    if (entry?.target.clientWidth) width.value = entry.target.clientWidth;
  });
  const host = ref((element) => {
    observer.disconnect();
    if (element) observer.observe(element);
  });
  return { width: width as ReadonlySignal<number>, host };
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

/** What a view says until the first answer is there. */
export function waitingNote(what: string): TemplateResult {
  return emptyNote(`${what} …`, "This may take a moment.");
}

export interface Option {
  id: string;
  title: string;
  disabled?: boolean;
  hint?: string | null;
}

/** Options; those that are called what they are may be names alone. */
type Options = readonly (Option | string)[];

export interface Choice {
  label: string;
  options: Options;
  /** Options under a heading of their own. */
  group?: { label: string; options: Options } | null;
  value: string | Signal<string>;
  onChange?: (id: string) => void;
  /** Of the select, which has it as its test id, too. */
  id?: string;
  hidden?: boolean;
  disabled?: boolean;
}

/** A labelled choice; hidden where there is but one, unless told otherwise. */
export function choice(of: Choice): TemplateResult {
  const { label, options, value, onChange, id = nothing, group } = of;
  const chosen = typeof value === "string" ? value : value.value;
  const change = (event: Event): void => {
    const next = fieldValue(event);
    if (typeof value !== "string") value.value = next;
    onChange?.(next);
  };
  return html`<label class="field" for=${id} ?hidden=${of.hidden ?? options.length < 2}
    >${label}<select id=${id} data-testid=${id} aria-label=${of.id ? nothing : label}
      ?disabled=${of.disabled} @change=${change}>
      ${optionList(options, chosen)}
      ${group ? html`<optgroup label=${group.label}>${optionList(group.options, chosen)}</optgroup>` : nothing}
    </select></label>`;
}

/** Options of a select, with `value` chosen whatever the reader has chosen meanwhile. */
export function optionList(options: Options, value: string): TemplateResult[] {
  return options.map((option) => {
    const { id, title, disabled, hint } =
      typeof option === "string" ? ({ id: option, title: option } as Option) : option;
    return html`<option value=${id} ?disabled=${disabled} title=${hint ?? nothing}
      .selected=${live(id === value)}>${title}</option>`;
  });
}

interface Check {
  checked: boolean | Signal<boolean>;
  onChange?: (checked: boolean) => void;
  testId: unknown;
  title?: string;
  disabled?: boolean;
}

/** A labelled checkbox. */
export function checkbox(label: string, of: Check): TemplateResult {
  const { checked, onChange, testId, title = nothing } = of;
  const change = ({ currentTarget }: Event): void => {
    const next = (currentTarget as HTMLInputElement).checked;
    if (typeof checked !== "boolean") checked.value = next;
    onChange?.(next);
  };
  return html`<label class="check" title=${title}><input type="checkbox" data-testid=${testId}
    .checked=${live(typeof checked === "boolean" ? checked : checked.value)}
    ?disabled=${of.disabled} @change=${change}><span>${label}</span></label>`;
}

interface ButtonLook {
  testId?: string;
  /** Further classes: "small", "quiet", "primary". */
  kind?: string;
  /** Pressed in vain; it keeps the focus, so that a keyboard can press it again later. */
  disabled?: boolean;
  hidden?: boolean;
}

export function button(
  text: unknown,
  press: (event: Event) => void,
  { testId, kind = "", disabled = false, hidden = false }: ButtonLook = {},
): TemplateResult {
  return html`<button class="button ${kind}" type="button" data-testid=${testId ?? nothing}
    aria-disabled=${disabled} ?hidden=${hidden} @click=${disabled ? nothing : press}>${text}</button>`;
}

/** Cells of a row, of which the first is its head; or a whole row. */
type Row = readonly unknown[] | TemplateResult;

/** A table. Its caption is seen where the columns have no heads. */
export function dataTable(
  caption: string,
  heads: readonly unknown[],
  rows: readonly Row[],
  { testId, foot = [] }: { testId?: string; foot?: readonly Row[] } = {},
): TemplateResult {
  const row = (cells: Row): TemplateResult => {
    if (!Array.isArray(cells)) return cells as TemplateResult;
    const [first, ...others] = cells as unknown[];
    return html`<tr><th scope="row">${first}</th>${others.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  };
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${caption}>
    <table class="data-table" data-testid=${testId ?? nothing}>
    <caption class=${heads.length ? "visually-hidden" : ""}>${caption}</caption>
    ${heads.length ? html`<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>` : nothing}
    <tbody>${rows.map(row)}</tbody>${foot.length ? html`<tfoot>${foot.map(row)}</tfoot>` : nothing}
  </table></div>`;
}

/** What is shown when the reader asks for it; `open` follows that. */
export function folded(summary: string, content: unknown, open?: Signal<boolean>): TemplateResult {
  const toggle = ({ currentTarget }: Event): void => {
    if (open) open.value = (currentTarget as HTMLDetailsElement).open;
  };
  return html`<details class="folded" @toggle=${toggle}><summary>${summary}</summary>${content}</details>`;
}

/** A handler that sets a signal. */
export function setting<T>(target: Signal<T>, value: T): () => void {
  return () => {
    target.value = value;
  };
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

interface ListBox {
  label: string;
  kind: string;
  /** Begins the ids of the options. */
  id: string;
  options: { kind: string; content: unknown; hidden?: boolean; title?: unknown }[];
  chosen: number;
  choose: (option: number) => void;
  testId?: unknown;
  optionTestId?: unknown;
}

/** A list of which one option is chosen, by a click or the arrow keys; it scrolls into sight. */
export function listbox(of: ListBox): TemplateResult {
  const { id, options, chosen, choose, testId = nothing, optionTestId = nothing } = of;
  const inSight = range(options.length).filter((option) => !options[option]!.hidden);
  const item = (
    { kind, content, hidden, title = nothing }: ListBox["options"][number],
    at: number,
  ) =>
    html`<li class=${kind} role="option" id="${id}-${at}" data-testid=${optionTestId}
      title=${title} ?hidden=${hidden} aria-selected=${at === chosen}
      @click=${({ currentTarget }: Event) => {
        choose(at);
        (currentTarget as HTMLElement).parentElement!.focus({ preventScroll: true });
      }} ${at === chosen ? ref(reveal) : nothing}>${content}</li>`;
  return html`<ol class=${of.kind} role="listbox" tabindex="0" aria-label=${of.label}
    aria-activedescendant="${id}-${chosen}" data-testid=${testId}
    @keydown=${(event: KeyboardEvent) => onArrows(event, inSight, chosen, choose)}
    >${options.map(item)}</ol>`;
}

/** Scroll a list until an option, and something of its neighbours, is in sight. */
function reveal(option: Element | undefined): void {
  // Once it is in the page.
  queueMicrotask(() => {
    if (option?.parentElement) scrollWithin(option.parentElement, option, 24);
  });
}

/** The numbers from 0 to `count`, without it. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Items by their key, both in the order in which they came. */
export function groupBy<K, T>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Python on one line, highlighted. */
export function python(text: string): DocumentFragment {
  return highlightedLines(text)[0]!;
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
