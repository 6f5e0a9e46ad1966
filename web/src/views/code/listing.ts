/**
 * A long program text of which only the lines in view exist as elements.
 *
 * It is a list box: arrow keys go from line to line, and the owner hears which line is pointed at or
 * chosen, and says which lines light up.
 */

import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { element } from "../../dom";
import { once, range, reactive } from "../kit";
import { type Lines, ranges } from "./links";

/** Height of a line in pixels; style sheets have it as `--row`. */
const ROW = 20;
/** Lines made at once; at least as many are ready above and below. */
const MARGIN = 12;
const MAX_MARKS = 200;

export interface ListedLine {
  text: string;
  /** The number to show, or null for none; by default lines are counted. */
  number?: number | null;
  kind?: "same" | "added" | "removed";
  /** Number of the colour that tells lines of one origin from others. */
  colour?: number | undefined;
}

export interface Listed {
  lines: ListedLine[];
  /** The line, from 1, that is at the top at first. */
  start: number;
}

interface ListingState {
  id: string;
  label: string;
  highlight: (text: string) => Node;
  listed: ReadonlySignal<Listed>;
  lit: ReadonlySignal<Lines>;
  /** Whether the first lit line comes into view where none is. */
  reveals: ReadonlySignal<boolean>;
  /** The chosen line. */
  chosen: ReadonlySignal<number | null>;
  /** A line was chosen by a click or a key; null if there is none any more. */
  onChoose: (line: number | null) => void;
  /** The mouse points at a line, or at none. */
  onPoint: (line: number | null) => void;
}

export function codeListing(state: ListingState): HTMLElement {
  const { id, highlight, listed, lit, reveals, chosen, onChoose, onPoint } = state;
  const root = element("div", { class: "code-frame" });
  const box = (): HTMLElement => root.firstElementChild as HTMLElement;
  /** The first line in view and how many there are, as of the last frame, in steps of MARGIN. */
  const top = signal(0);
  const height = signal(0);
  const count = computed(() => listed.value.lines.length);
  const longest = computed(() =>
    listed.value.lines.reduce((most, { text }) => Math.max(most, text.length), 0),
  );
  const isDiff = computed(() => listed.value.lines.some(({ kind = "same" }) => kind !== "same"));
  const firstInView = (): number => Math.floor(box().scrollTop / ROW) + 1;
  const measure = (): void => {
    top.value = Math.floor(box().scrollTop / ROW / MARGIN) * MARGIN;
    height.value = Math.ceil(box().clientHeight / ROW);
  };
  const reveal = (): void => {
    const { scrollTop, clientHeight } = box();
    const bottom = (scrollTop + clientHeight) / ROW;
    const lines = [...lit.value];
    if (!lines.length || lines.some((line) => line >= firstInView() && line <= bottom)) return;
    box().scrollTop = (Math.min(...lines) - 1) * ROW - Math.min(3 * ROW, clientHeight / 3);
  };
  const choose = (target: number): void => {
    const line = Math.min(Math.max(1, target), count.value);
    const { clientHeight } = box();
    box().scrollTop = Math.max(
      line * ROW - clientHeight,
      Math.min((line - 1) * ROW, box().scrollTop),
    );
    measure();
    onChoose(line);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && chosen.value !== null) onChoose(null);
    const at = chosen.value ?? firstInView();
    const page = Math.max(1, Math.floor(box().clientHeight / ROW) - 1);
    const target = {
      ArrowUp: at - 1,
      ArrowDown: at + 1,
      PageUp: at - page,
      PageDown: at + page,
      Home: 1,
      End: count.value,
    }[event.key];
    if (target === undefined || !count.value) return;
    event.preventDefault();
    choose(target);
  };
  const onFocus = (): void => {
    if (chosen.value === null && count.value && box().matches(":focus-visible"))
      choose([...lit.value][0] ?? firstInView());
  };
  let pointed: number | null = null;
  const point = (event: PointerEvent, line: number | null): void => {
    if (event.pointerType !== "mouse" || line === pointed) return;
    pointed = line;
    onPoint(line);
  };

  const row = (number: number): TemplateResult => {
    const line = listed.value.lines[number - 1]!;
    const { text, kind = "same", colour, number: label = number } = line;
    const classes = [
      kind,
      lit.value.has(number) ? "lit" : "",
      chosen.value === number ? "chosen" : "",
    ];
    const from = colour === undefined ? "" : `--from: var(--hue-${colour})`;
    return html`<div class="code-line ${classes.join(" ")}" role="option" id="${id}-${number}" .style=${from}
      data-line=${number} aria-posinset=${number} aria-setsize=${count.value}
      aria-selected=${lit.value.has(number)}><span class="code-number"
      aria-hidden="true">${label}</span>${once(line, () =>
        kind === "removed" ? html`<del>${highlight(text)}</del>` : highlight(text),
      )}</div>`;
  };
  /** Where lit lines are in the whole. */
  const marks = (): TemplateResult[] =>
    ranges(lit.value)
      .slice(0, MAX_MARKS)
      .map(([first, last]) => {
        const [start, share] = [first - 1, last - first + 1].map(
          (lines) => (100 * lines) / count.value,
        );
        return html`<i .style=${`top: ${start}%; height: max(3px, ${share}%)`}></i>`;
      });
  reactive(root, () => {
    const first = Math.max(0, top.value - MARGIN);
    const last = Math.min(count.value, top.value + height.value + 2 * MARGIN);
    const rows = range(Math.max(0, last - first)).map((index) => first + index + 1);
    const size = `height: ${count.value * ROW}px; min-width: calc(${longest.value}ch + var(--code-gutter))`;
    return html`<div class="code-box ${isDiff.value ? "is-diff" : ""}" id=${id} role="listbox"
        tabindex="0" data-testid=${id} aria-label=${state.label}
        aria-activedescendant=${chosen.value === null ? nothing : `${id}-${chosen.value}`}
        @scroll=${() => requestAnimationFrame(measure)} @keydown=${onKey} @focus=${onFocus}
        @click=${(event: Event) => lineAt(event) && choose(lineAt(event)!)}
        @pointerover=${(event: PointerEvent) => point(event, lineAt(event))}
        @pointerleave=${(event: PointerEvent) => point(event, null)}>
        <div class="code-sheet" role="presentation" .style=${size}>
          <div class="code-rows" role="presentation"
            .style=${`transform: translateY(${first * ROW}px)`}>${repeat(rows, String, row)}</div>
        </div></div>
      <div class="code-ruler" aria-hidden="true">${marks()}</div>`;
  });
  effect(() => {
    const { start } = listed.value;
    // What is not in the page yet cannot be scrolled.
    queueMicrotask(() => {
      box().scrollTo(0, (start - 1) * ROW);
      if (reveals.peek()) reveal();
      measure();
    });
  });
  effect(() => {
    if (lit.value && reveals.peek()) untracked(reveal);
  });
  new ResizeObserver(measure).observe(root);
  return root;
}

function lineAt(event: Event): number | null {
  const row = (event.target as HTMLElement).closest<HTMLElement>(".code-line");
  return row ? Number(row.dataset.line) : null;
}
