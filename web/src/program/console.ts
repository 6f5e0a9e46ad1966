/** The console: bounded output, notes of the page, and errors that lead to their line. */

import { element, soon } from "../dom";
import { addTo, BoundedOutput, countOf, describeDropped, partsOf } from "../python/bounded";
import type { Dropped, OutputChunk, RunError } from "../python/wire";
import { richElement } from "../shell/picture";

/** Lines and characters kept; the oldest go first, and a line at the top says how many went. */
const KEPT: Dropped = { lines: 4000, characters: 100_000 };

export class ConsolePanel {
  private dropped: Dropped = { lines: 0, characters: 0 };
  private shown: Dropped = { lines: 0, characters: 0 };
  private readonly waiting = new BoundedOutput(KEPT.characters);
  /** What each part of the output counts for. */
  private readonly sizes = new WeakMap<Element, Dropped>();
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
    this.waiting.take();
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
        const { stream, text } = chunk;
        const rich = richElement(chunk);
        if (rich) return [[rich, countOf(chunk)]];
        return partsOf(text).map((part) => [
          element("span", { class: `out-${stream}` }, part),
          countOf({ stream, text: part }),
        ]);
      }),
    );
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
