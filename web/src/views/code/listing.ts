/**
 * A long program text of which only the lines in view exist as elements.
 *
 * It is a list box: arrow keys go from line to line, and the line that is pointed at or gone to is
 * told to the owner, who says which lines light up.
 */

import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { element } from "../../dom";
import { once, range, reactive } from "../kit";
import { type Lines, ranges } from "./links";

/** Height of a line in pixels; style sheets have it as `--row`. */
const ROW = 20;
/** Lines are made by so many at once, and at least as many are ready above and below. */
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
  /** The line that was gone to. */
  chosen: ReadonlySignal<number | null>;
  /** A line was gone to by a click or a key; null if there is none any more. */
  onChoose: (line: number | null) => void;
  /** The mouse points at a line, or at none. */
  onPoint: (line: number | null) => void;
}

export function codeListing(state: ListingState): HTMLElement {
  const { id, highlight, listed, lit, reveals, chosen, onChoose, onPoint } = state;
  const box = element("div", {
    class: "code-box",
    id,
    role: "listbox",
    tabindex: 0,
    "data-testid": id,
    "aria-label": state.label,
  });
  const ruler = element("div", { class: "code-ruler", "aria-hidden": "true" });
  /** The first line in view and how many there are, as of the last frame, in steps of MARGIN. */
  const top = signal(0);
  const height = signal(0);
  const count = computed(() => listed.value.lines.length);
  const size = computed(() => {
    const longest = listed.value.lines.reduce((most, { text }) => Math.max(most, text.length), 0);
    return `height: ${count.value * ROW}px; min-width: calc(${longest}ch + var(--code-gutter))`;
  });
  const firstInView = (): number => Math.floor(box.scrollTop / ROW) + 1;
  const measure = (): void => {
    top.value = Math.floor(box.scrollTop / ROW / MARGIN) * MARGIN;
    height.value = Math.ceil(box.clientHeight / ROW);
  };

  let shown: Listed | null = null;
  let litBefore: Lines | null = null;
  /** Once the box is in the page, since what is in none cannot be scrolled. */
  const scrollToStart = (): void => {
    box.scrollTop = (listed.value.start - 1) * ROW;
    box.scrollLeft = 0;
    if (reveals.value) reveal(lit.value);
    measure();
  };
  const reveal = (lines: Lines): void => {
    const bottom = (box.scrollTop + box.clientHeight) / ROW;
    if (!lines.size || [...lines].some((line) => line >= firstInView() && line <= bottom)) return;
    box.scrollTop = (Math.min(...lines) - 1) * ROW - Math.min(3 * ROW, box.clientHeight / 3);
  };

  const row = (number: number): TemplateResult => {
    const line = listed.value.lines[number - 1]!;
    const { text, kind, colour, number: label = number } = line;
    const classes = [
      kind && kind !== "same" ? kind : "",
      colour === undefined ? "" : `from colour-${colour}`,
      lit.value.has(number) ? "lit" : "",
      chosen.value === number ? "chosen" : "",
    ];
    return html`<div class="code-line ${classes.join(" ")}" role="option" id="${id}-${number}"
      data-line=${number} aria-posinset=${number} aria-setsize=${count.value}
      aria-selected=${lit.value.has(number)}><span class="code-number"
      aria-hidden="true">${label}</span>${once(line, () =>
        kind === "removed" ? html`<del>${highlight(text)}</del>` : highlight(text),
      )}</div>`;
  };
  reactive(
    box,
    () => {
      const first = Math.max(0, top.value - MARGIN);
      const last = Math.min(count.value, top.value + height.value + 2 * MARGIN);
      const rows = range(Math.max(0, last - first)).map((index) => first + index + 1);
      return html`<div class="code-sheet" role="presentation" .style=${size.value}>
        <div class="code-rows" role="presentation"
          .style=${`transform: translateY(${first * ROW}px)`}>${repeat(rows, String, row)}</div>
      </div>`;
    },
    () => {
      const { lines } = listed.value;
      box.classList.toggle(
        "is-diff",
        lines.some(({ kind }) => kind && kind !== "same"),
      );
      if (chosen.value === null) box.removeAttribute("aria-activedescendant");
      else box.setAttribute("aria-activedescendant", `${id}-${chosen.value}`);
      if (shown !== listed.value) queueMicrotask(scrollToStart);
      else if (litBefore !== lit.value && reveals.value) reveal(lit.value);
      shown = listed.value;
      litBefore = lit.value;
    },
  );
  reactive(ruler, () => {
    const total = Math.max(1, count.value);
    return ranges(lit.value)
      .slice(0, MAX_MARKS)
      .map(([first, last]) => {
        const share = `max(3px, ${((last - first + 1) / total) * 100}%)`;
        return html`<i .style=${`top: ${((first - 1) / total) * 100}%; height: ${share}`}></i>`;
      });
  });

  const choose = (target: number): void => {
    const line = Math.min(Math.max(1, target), count.value);
    const place = (line - 1) * ROW;
    if (place < box.scrollTop) box.scrollTop = place;
    const bottom = place + ROW - box.clientHeight;
    if (bottom > box.scrollTop) box.scrollTop = bottom;
    measure();
    onChoose(line);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && chosen.value !== null) {
      onChoose(null);
      return;
    }
    const at = chosen.value ?? firstInView();
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const targets: Record<string, number> = {
      ArrowUp: at - 1,
      ArrowDown: at + 1,
      PageUp: at - page,
      PageDown: at + page,
      Home: 1,
      End: count.value,
    };
    const target = targets[event.key];
    if (target === undefined || !count.value) return;
    event.preventDefault();
    choose(target);
  };
  let pointed: number | null = null;
  const point = (line: number | null): void => {
    if (line === pointed) return;
    pointed = line;
    onPoint(line);
  };
  box.addEventListener("scroll", () => requestAnimationFrame(measure), { passive: true });
  box.addEventListener("keydown", onKey);
  box.addEventListener("click", (event) => {
    const line = lineAt(event);
    if (line !== null) choose(line);
  });
  box.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") point(lineAt(event));
  });
  box.addEventListener("pointerleave", () => point(null));
  box.addEventListener("focus", () => {
    if (chosen.value === null && count.value && box.matches(":focus-visible"))
      choose([...lit.value][0] ?? firstInView());
  });
  new ResizeObserver(measure).observe(box);
  return element("div", { class: "code-frame" }, box, ruler);
}

function lineAt(event: Event): number | null {
  const row = (event.target as HTMLElement).closest<HTMLElement>(".code-line");
  return row ? Number(row.dataset.line) : null;
}
