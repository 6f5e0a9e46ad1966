/** The console: bounded output, notes of the page, and errors that lead to their line. */

import { element } from "../dom";
import { countLines } from "../python/output";
import type { OutputChunk, RunError } from "../python/protocol";
import { linesOf, pictureElement } from "../shell/picture";

/** Lines kept; the oldest go first, and a line at the top says how many went. */
const KEPT_LINES = 4000;

export class ConsolePanel {
  private dropped = 0;
  private lines = 0;
  private waiting: OutputChunk[] = [];
  /** What each part of the output counts for, in lines. */
  private readonly sizes = new WeakMap<Element, number>();
  private readonly notice = element("div", { class: "out-notice", hidden: true });

  constructor(
    private readonly panel: HTMLElement,
    private readonly goTo: (line: number, column: number) => void,
  ) {
    this.clear();
  }

  /** Show output at the next frame: a flood costs one update per frame. */
  append(chunks: OutputChunk[]): void {
    if (!this.waiting.length) requestAnimationFrame(() => this.showWaiting());
    this.waiting.push(...chunks);
  }

  /** Show a sentence of the page itself. */
  note(text: string, kind: "info" | "done" | "warning" = "info"): void {
    this.showWaiting();
    this.add(element("div", { class: `out-note ${kind}` }, text));
  }

  error(error: RunError): void {
    this.showWaiting();
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
    this.waiting = [];
    this.dropped = 0;
    this.lines = 0;
    this.notice.hidden = true;
    this.notice.textContent = "";
    this.panel.replaceChildren(this.notice);
  }

  private showWaiting(): void {
    const chunks = this.waiting;
    if (!chunks.length) return;
    this.waiting = [];
    for (const { stream, text, dropped, picture } of chunks) {
      this.dropped += dropped;
      if (picture) this.add(pictureElement(picture), linesOf(picture));
      else if (text) this.add(element("span", { class: `out-${stream}` }, this.lastLines(text)));
    }
    this.showDropped();
  }

  private lastLines(text: string): string {
    const excess = countLines(text) - KEPT_LINES;
    if (excess <= 0) return text;
    let start = 0;
    for (let i = 0; i < excess; i += 1) start = text.indexOf("\n", start) + 1;
    this.dropped += excess;
    return text.slice(start);
  }

  private add(node: HTMLElement, lines = countLines(node.textContent ?? "")): void {
    const { panel } = this;
    const following = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 40;
    panel.append(node);
    this.lines += lines;
    this.sizes.set(node, lines);
    while (this.lines > KEPT_LINES && panel.children.length > 2) {
      const oldest = panel.children[1]!;
      const count = this.sizes.get(oldest) ?? 0;
      this.lines -= count;
      this.dropped += count;
      oldest.remove();
    }
    this.showDropped();
    if (following) panel.scrollTop = panel.scrollHeight;
  }

  private showDropped(): void {
    this.notice.hidden = this.dropped === 0;
    this.notice.textContent = this.notice.hidden
      ? ""
      : `… ${this.dropped.toLocaleString("en")} earlier lines were dropped`;
  }
}
