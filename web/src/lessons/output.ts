/** What a cell printed and showed, live or recorded; shown modules can be opened where they appear. */

import { element } from "../dom";
import { highlighted } from "../highlight";
import { countLines } from "../python/output";
import type { OutputChunk, RunError, Stream } from "../python/protocol";
import { linesOf, pictureElement } from "../shell/picture";
import type { OutputSink } from "../shell/runner";

/** Characters kept of one cell; the oldest go first. */
const KEPT = 60_000;
/** What a picture counts for. */
const PICTURE = 1000;
/** With this mark Python's half of the page prints that a module was shown, and its title. */
const SHOWN = /^→ TensorIR: (.*)\n?/m;

interface Module {
  title: string;
  source: string;
}

export class CellOutput implements OutputSink {
  readonly root = element("div", { class: "lesson-output", "data-testid": "lesson-output" });
  /** Called with what the reader wants to see in the TensorIR view. */
  onOpen?: (module: Module) => void;
  private pieces: OutputChunk[] = [];
  private modules: Module[] = [];
  private dropped = 0;
  private waiting = false;
  private extra: HTMLElement[] = [];

  clear(): void {
    this.pieces = [];
    this.modules = [];
    this.dropped = 0;
    this.extra = [];
    this.root.classList.remove("is-recorded");
    this.render();
  }

  append(chunks: OutputChunk[]): void {
    for (const { stream, text, dropped, picture } of chunks) {
      this.dropped += dropped;
      const last = this.pieces.at(-1);
      if (picture) this.pieces.push({ stream, text, dropped: 0, picture });
      else if (last?.stream === stream && !last.picture) last.text += text;
      else this.pieces.push({ stream, text, dropped: 0 });
    }
    this.trim();
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  note(text: string, kind: "info" | "done" | "warning"): void {
    // How long it took stands in the cell's own line.
    if (kind !== "done") this.add(element("div", { class: `out-note ${kind}` }, text));
  }

  error(error: RunError): void {
    this.add(element("div", { class: "out-error" }, element("pre", {}, error.text)));
  }

  /** Put something below the output. */
  add(node: HTMLElement): void {
    this.extra.push(node);
    this.root.append(node);
  }

  /** The modules that the cell has shown; each stands where it was shown. */
  show(modules: Module[]): void {
    this.modules = modules;
    this.render();
  }

  /** Show what an earlier run printed, with a line that says when and where that was. */
  showRecorded(text: string, modules: Module[], when: string): void {
    this.clear();
    this.pieces = text ? [{ stream: "stdout", text, dropped: 0 }] : [];
    this.modules = modules;
    if (!text && !modules.length) return;
    this.extra = [element("p", { class: "recorded-note" }, when)];
    this.root.classList.add("is-recorded");
    this.render();
  }

  private render(): void {
    const left = [...this.modules];
    const shown: HTMLElement[] = [];
    if (this.dropped)
      shown.push(
        element(
          "p",
          { class: "out-notice" },
          `… ${this.dropped.toLocaleString("en")} earlier lines were dropped`,
        ),
      );
    const alone = this.modules.length === 1;
    for (const { stream, text, picture } of this.pieces) {
      if (picture) shown.push(pictureElement(picture));
      let rest = text;
      for (let found = SHOWN.exec(rest); stream === "stdout" && found; found = SHOWN.exec(rest)) {
        const at = left.findIndex(({ title }) => title === found![1]);
        if (at < 0) break;
        addText(shown, stream, rest.slice(0, found.index));
        shown.push(this.moduleBox(left.splice(at, 1)[0]!, alone));
        rest = rest.slice(found.index + found[0].length);
      }
      addText(shown, stream, rest);
    }
    this.root.replaceChildren(...shown, ...this.extra);
  }

  private moduleBox(module: Module, open: boolean): HTMLElement {
    const title = module.title.replace(/, line \d+$/, "");
    const view = element(
      "button",
      { class: "button quiet small", type: "button" },
      "→ TensorIR view",
    );
    view.addEventListener("click", () => this.onOpen?.(module));
    return element(
      "details",
      { class: "shown-module", open, "data-title": module.title },
      element("summary", {}, title),
      element(
        "pre",
        { class: "code", tabindex: 0, role: "group", "aria-label": title },
        highlighted(module.source),
      ),
      this.onOpen ? view : null,
    );
  }

  private trim(): void {
    let excess = this.pieces.reduce((sum, piece) => sum + sizeOf(piece), 0) - KEPT;
    while (excess > 0 && this.pieces.length) {
      const first = this.pieces[0]!;
      if (first.picture) {
        this.pieces.shift();
        this.dropped += linesOf(first.picture);
        excess -= PICTURE;
        continue;
      }
      const newline = first.text.indexOf("\n", Math.min(excess, first.text.length) - 1);
      const cut = newline < 0 ? first.text.length : newline + 1;
      this.dropped += countLines(first.text.slice(0, cut));
      first.text = first.text.slice(cut);
      excess -= cut;
      if (!first.text) this.pieces.shift();
    }
  }
}

function sizeOf({ text, picture }: OutputChunk): number {
  return picture ? PICTURE : text.length;
}

function addText(shown: HTMLElement[], stream: Stream, text: string): void {
  if (text) shown.push(element("pre", { class: `out-${stream}` }, text));
}
