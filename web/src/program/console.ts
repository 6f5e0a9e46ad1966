/** The console: bounded output, notes of the page, and errors that lead to their line. */

import { element, soon } from "../dom";
import {
  addTo,
  BoundedOutput,
  continued,
  countOf,
  describeDropped,
  displayed,
  partsOf,
} from "../python/bounded";
import type { Dropped, OutputChunk, Stream } from "../python/messages";
import type { RunError } from "../python/wire";
import { richElement } from "../shell/picture";

/** Lines and characters kept; the oldest go first, and a line at the top says how many went. */
const KEPT: Dropped = { lines: 4000, characters: 100_000 };

export class ConsolePanel {
  private dropped: Dropped = { lines: 0, characters: 0 };
  private shown: Dropped = { lines: 0, characters: 0 };
  private readonly waiting = new BoundedOutput(KEPT.characters);
  /** What each part of the output counts for. */
  private readonly sizes = new WeakMap<Element, Dropped>();
  /** The line at the end that may be continued, with its carriage returns, and what shows it. */
  private open: { stream: Stream; text: string; node: HTMLElement } | null = null;
  private readonly notice = element("div", { class: "out-notice", hidden: true });

  constructor(
    private readonly panel: HTMLElement,
    private readonly goTo: (line: number, column: number) => void,
  ) {
    this.clear();
  }

  /** Show output at the next frame: a flood costs one update per frame. */
  append(chunks: OutputChunk[]): void {
    if (!this.waiting.chunks.length) soon(() => this.showWaiting());
    for (const chunk of chunks) this.waiting.add(chunk);
  }

  /** Show a sentence of the page itself. */
  note(text: string, kind: "info" | "done" | "warning" = "info"): void {
    this.showWaiting();
    this.open = null;
    this.add(element("div", { class: `out-note ${kind}` }, text));
  }

  error(error: RunError): void {
    this.showWaiting();
    this.open = null;
    const block = element("div", { class: "out-error" }, element("pre", {}, error.text));
    const place = error.diagnostics[0];
    if (place) {
      const button = element("button", { class: "button small" }, `Go to line ${place.line}`);
      button.addEventListener("click", () => this.goTo(place.line, place.column));
      block.append(button);
    }
    this.add(block);
  }

  clear(): void {
    this.waiting.take();
    this.open = null;
    this.dropped = { lines: 0, characters: 0 };
    this.shown = { lines: 0, characters: 0 };
    this.panel.replaceChildren(this.notice);
    this.dropOldest();
  }

  private showWaiting(): void {
    const chunks = this.waiting.take();
    for (const { dropped } of chunks) addTo(this.dropped, dropped);
    this.addAll(
      chunks.flatMap((chunk): [HTMLElement, Dropped][] => {
        const rich = richElement(chunk);
        if (!rich) return this.spansOf(chunk);
        this.open = null;
        return [[rich, countOf(chunk)]];
      }),
    );
  }

  private spansOf({ stream, text }: OutputChunk): [HTMLElement, Dropped][] {
    const parts = partsOf(this.reopened(stream, text));
    return parts.map((part) => {
      const shown = displayed(part);
      const node = element("span", { class: `out-${stream}` }, shown);
      this.open = { stream, text: part.slice(part.lastIndexOf("\n") + 1), node };
      return [node, countOf({ stream, text: shown })];
    });
  }

  /** A text of which the first line takes the place of the last one shown, where it says so. */
  private reopened(stream: Stream, text: string): string {
    const { open } = this;
    if (open?.stream !== stream) return text;
    const whole = continued(open.text, text);
    if (whole === open.text + text) return text;
    const { node } = open;
    const before = node.textContent ?? "";
    node.textContent = before.slice(0, before.length - displayed(open.text).length);
    const size = countOf({ stream, text: node.textContent });
    const old = this.sizes.get(node);
    this.sizes.set(node, size);
    if (old)
      addTo(this.shown, {
        lines: size.lines - old.lines,
        characters: size.characters - old.characters,
      });
    return whole;
  }

  private add(node: HTMLElement): void {
    this.addAll([[node, countOf({ stream: "stdout", text: node.textContent ?? "" })]]);
  }

  private addAll(nodes: [node: HTMLElement, size: Dropped][]): void {
    const { panel, shown } = this;
    // Asked once: each answer costs a layout.
    const following = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 40;
    for (const [node, size] of nodes) {
      panel.append(node);
      addTo(shown, size);
      this.sizes.set(node, size);
    }
    this.dropOldest();
    if (following) panel.scrollTop = panel.scrollHeight;
  }

  private dropOldest(): void {
    const { panel, shown } = this;
    while (shown.lines > KEPT.lines || shown.characters > KEPT.characters) {
      if (panel.children.length <= 2) break;
      const oldest = panel.children[1]!;
      const size = this.sizes.get(oldest)!;
      addTo(this.dropped, size);
      addTo(shown, { lines: -size.lines, characters: -size.characters });
      oldest.remove();
    }
    this.notice.textContent = describeDropped(this.dropped);
    this.notice.hidden = this.notice.textContent === "";
  }
}
