/** What a cell printed and showed, live or recorded; shown modules can be opened where they appear. */

import { element, soon } from "../dom";
import { highlighted } from "../highlight";
import { addTo, BoundedOutput, describeDropped } from "../python/bounded";
import type { Dropped, OutputChunk, RunError, Stream } from "../python/wire";
import { richElement } from "../shell/picture";
import type { OutputSink } from "../shell/runner";

/** Characters kept of one cell at least; the oldest go first. */
const KEPT = 30_000;
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
  private pieces = new BoundedOutput(KEPT);
  private modules: Module[] = [];
  private waiting = false;
  private extra: HTMLElement[] = [];

  clear(): void {
    this.pieces = new BoundedOutput(KEPT);
    this.modules = [];
    this.extra = [];
    this.root.classList.remove("is-recorded");
    this.render();
  }

  append(chunks: OutputChunk[]): void {
    for (const chunk of chunks) this.pieces.add(chunk);
    if (this.waiting) return;
    this.waiting = true;
    soon(() => {
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
    this.pieces.add({ stream: "stdout", text });
    this.modules = modules;
    if (!text && !modules.length) return;
    this.extra = [element("p", { class: "recorded-note" }, when)];
    this.root.classList.add("is-recorded");
    this.render();
  }

  private render(): void {
    const left = [...this.modules];
    const shown: HTMLElement[] = [];
    const { chunks } = this.pieces;
    const dropped: Dropped = { lines: 0, characters: 0 };
    for (const chunk of chunks) addTo(dropped, chunk.dropped);
    const notice = describeDropped(dropped);
    if (notice) shown.push(element("p", { class: "out-notice" }, notice));
    const alone = this.modules.length === 1;
    for (const chunk of chunks) {
      const { stream, text } = chunk;
      const rich = richElement(chunk);
      if (rich) shown.push(rich);
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
}

function addText(shown: HTMLElement[], stream: Stream, text: string): void {
  if (text) shown.push(element("pre", { class: `out-${stream}` }, text));
}
