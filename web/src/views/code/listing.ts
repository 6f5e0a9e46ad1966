/**
 * A long program text of which only the lines in view exist as elements.
 *
 * It is a list box: arrow keys go from line to line, and the line that is pointed at or gone to is
 * told to the owner, who says which lines light up.
 */

import { element } from "../../dom";
import { type Lines, ranges } from "./links";

/** Height of a line in pixels; style sheets have it as `--row`. */
const ROW = 20;
/** Lines kept ready above and below those in view. */
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

interface ListingOptions {
  id: string;
  label: string;
  highlight: (text: string) => Node;
  /** A line was gone to by a click or a key; null if there is none any more. */
  onChoose: (line: number | null) => void;
  /** The mouse points at a line, or at none. */
  onPoint: (line: number | null) => void;
}

export class CodeListing {
  readonly root: HTMLElement;
  private readonly box: HTMLElement;
  private readonly sheet = element("div", { class: "code-sheet", role: "presentation" });
  private readonly rows = element("div", { class: "code-rows", role: "presentation" });
  private readonly ruler = element("div", { class: "code-ruler", "aria-hidden": "true" });
  private lines: ListedLine[] = [];
  private lit: Lines = new Set();
  private chosen: number | null = null;
  private pointed: number | null = null;
  private first = 0;
  private last = 0;
  private frame = 0;

  constructor(private readonly options: ListingOptions) {
    const { id, label } = options;
    this.box = element("div", {
      class: "code-box",
      id,
      role: "listbox",
      tabindex: 0,
      "data-testid": id,
      "aria-label": label,
    });
    this.sheet.append(this.rows);
    this.box.append(this.sheet);
    this.root = element("div", { class: "code-frame" }, this.box, this.ruler);
    this.box.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("click", (event) => {
      const line = lineAt(event);
      if (line !== null) this.choose(line);
    });
    this.box.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse") this.point(lineAt(event));
    });
    this.box.addEventListener("pointerleave", () => this.point(null));
    this.box.addEventListener("focus", () => {
      if (this.chosen === null && this.lines.length && this.box.matches(":focus-visible")) {
        this.choose([...this.lit][0] ?? this.firstInView());
      }
    });
    new ResizeObserver(() => this.schedule()).observe(this.box);
  }

  /** Show other lines, scrolled to `start` (from 1). */
  show(lines: ListedLine[], start = 1): void {
    this.lines = lines;
    this.lit = new Set();
    this.chosen = this.pointed = null;
    const longest = lines.reduce((most, { text }) => Math.max(most, text.length), 0);
    this.sheet.style.height = `${lines.length * ROW}px`;
    this.sheet.style.minWidth = `calc(${longest}ch + var(--code-gutter))`;
    this.box.classList.toggle(
      "is-diff",
      lines.some(({ kind }) => kind && kind !== "same"),
    );
    this.box.scrollTop = (start - 1) * ROW;
    this.box.scrollLeft = 0;
    this.ruler.replaceChildren();
    this.render();
  }

  /** Light up lines. With `reveal` the first of them comes into view, if none is there already. */
  light(lit: Lines, reveal: boolean): void {
    this.lit = lit;
    if (reveal && lit.size) this.reveal(lit);
    this.mark();
    this.paint();
  }

  /** Forget the line that was gone to. */
  clear(): void {
    this.chosen = null;
    this.box.removeAttribute("aria-activedescendant");
  }

  /** Bring a line into view. */
  scrollTo(line: number): void {
    this.box.scrollTop = (line - 1) * ROW - Math.min(3 * ROW, this.box.clientHeight / 3);
  }

  private reveal(lit: Lines): void {
    const top = this.box.scrollTop / ROW + 1;
    const bottom = top + this.box.clientHeight / ROW - 1;
    let nearest: number | null = null;
    for (const line of lit) {
      if (line >= top && line <= bottom) return;
      if (nearest === null || line < nearest) nearest = line;
    }
    this.scrollTo(nearest!);
  }

  private choose(line: number): void {
    this.chosen = Math.min(Math.max(1, line), this.lines.length);
    const top = (this.chosen - 1) * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    const height = this.box.clientHeight;
    if (top + ROW > this.box.scrollTop + height) this.box.scrollTop = top + ROW - height;
    this.render();
    this.box.setAttribute("aria-activedescendant", this.rowId(this.chosen));
    this.options.onChoose(this.chosen);
  }

  private point(line: number | null): void {
    if (line === this.pointed) return;
    this.pointed = line;
    this.options.onPoint(line);
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && this.chosen !== null) {
      this.clear();
      this.options.onChoose(null);
      return;
    }
    const at = this.chosen ?? this.firstInView();
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const targets: Record<string, number> = {
      ArrowUp: at - 1,
      ArrowDown: at + 1,
      PageUp: at - page,
      PageDown: at + page,
      Home: 1,
      End: this.lines.length,
    };
    const target = targets[event.key];
    if (target === undefined || !this.lines.length) return;
    event.preventDefault();
    this.choose(target);
  }

  private firstInView(): number {
    return Math.floor(this.box.scrollTop / ROW) + 1;
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      const first = Math.floor(this.box.scrollTop / ROW);
      const last = first + Math.ceil(this.box.clientHeight / ROW);
      if (Math.max(0, first - 2) < this.first || Math.min(this.lines.length, last + 2) > this.last)
        this.render();
    });
  }

  private render(): void {
    const top = Math.floor(this.box.scrollTop / ROW);
    const height = Math.ceil(this.box.clientHeight / ROW);
    this.first = Math.max(0, top - MARGIN);
    this.last = Math.min(this.lines.length, top + height + MARGIN);
    this.rows.style.transform = `translateY(${this.first * ROW}px)`;
    const rows: HTMLElement[] = [];
    for (let index = this.first; index < this.last; index++) rows.push(this.row(index + 1));
    this.rows.replaceChildren(...rows);
    this.paint();
  }

  /** Show which of the lines in view are lit. The elements stay, so that clicks find them. */
  private paint(): void {
    for (const row of this.rows.children as HTMLCollectionOf<HTMLElement>) {
      const number = Number(row.dataset.line);
      row.classList.toggle("lit", this.lit.has(number));
      row.classList.toggle("chosen", number === this.chosen);
      row.setAttribute("aria-selected", String(this.lit.has(number)));
    }
  }

  private row(number: number): HTMLElement {
    const { text, kind, colour, number: shown = number } = this.lines[number - 1]!;
    const classes = ["code-line"];
    if (kind && kind !== "same") classes.push(kind);
    if (colour !== undefined) classes.push("from", `colour-${colour}`);
    return element(
      "div",
      {
        class: classes.join(" "),
        role: "option",
        id: this.rowId(number),
        "data-line": number,
        "aria-posinset": number,
        "aria-setsize": this.lines.length,
      },
      element(
        "span",
        { class: "code-number", "aria-hidden": "true" },
        shown === null ? "" : String(shown),
      ),
      kind === "removed"
        ? element("del", {}, this.options.highlight(text))
        : this.options.highlight(text),
    );
  }

  private rowId(line: number): string {
    return `${this.options.id}-${line}`;
  }

  /** Marks beside the scroll bar where lines are lit. */
  private mark(): void {
    const total = Math.max(1, this.lines.length);
    const marks = ranges(this.lit).slice(0, MAX_MARKS);
    this.ruler.replaceChildren(
      ...marks.map(([first, last]) => {
        const mark = element("i");
        mark.style.top = `${((first - 1) / total) * 100}%`;
        mark.style.height = `max(3px, ${((last - first + 1) / total) * 100}%)`;
        return mark;
      }),
    );
  }
}

function lineAt(event: Event): number | null {
  const row = (event.target as HTMLElement).closest<HTMLElement>(".code-line");
  return row ? Number(row.dataset.line) : null;
}
