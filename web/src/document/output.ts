/** What a cell printed and showed, live or recorded; shown modules can be opened where they appear. */

import { html, nothing, render, type TemplateResult } from "lit-html";
import { element, soon } from "../dom";
import { highlighted } from "../highlight";
import { addTo, BoundedOutput, describeDropped, displayed } from "../python/bounded";
import type { Dropped, OutputChunk, Stream } from "../python/messages";
import { type RunError, SHOWN_MODULE } from "../python/wire";
import { richElement } from "../shell/picture";
import type { OutputSink } from "../shell/runner";
import { once } from "../views/kit";

/** Characters kept of one cell at least; the oldest go first. */
const KEPT = 30_000;
const SHOWN = new RegExp(`^${SHOWN_MODULE}(.*)\\n?`, "m");

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
  /** What stands below the output. */
  private extra: TemplateResult[] = [];

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
    if (kind !== "done") this.add(html`<div class="out-note ${kind}">${text}</div>`);
  }

  error(error: RunError): void {
    this.add(html`<div class="out-error"><pre>${error.text}</pre></div>`);
  }

  /** Put something below the output. */
  add(template: TemplateResult): void {
    this.extra.push(template);
    this.render();
  }

  /** The modules that the cell has shown; each stands where it was shown. */
  show(modules: Module[]): void {
    this.modules = modules;
    this.render();
  }

  /** Show what an earlier run printed, with a line that says when and where that was. */
  showRecorded(text: string, modules: Module[], when: string): void {
    this.clear();
    if (!text && !modules.length) return;
    this.pieces.add({ stream: "stdout", text });
    this.modules = modules;
    this.root.classList.add("is-recorded");
    this.add(html`<p class="recorded-note">${when}</p>`);
  }

  private render(): void {
    const left = [...this.modules];
    const { chunks } = this.pieces;
    const dropped: Dropped = { lines: 0, characters: 0 };
    for (const chunk of chunks) addTo(dropped, chunk.dropped);
    const notice = describeDropped(dropped);
    const shown = chunks.map((chunk) => {
      const { stream, text } = chunk;
      const parts: unknown[] = [richElement(chunk) ?? nothing];
      let rest = text;
      for (let match = SHOWN.exec(rest); stream === "stdout" && match; match = SHOWN.exec(rest)) {
        const at = left.findIndex(({ title }) => title === match![1]);
        if (at < 0) break;
        parts.push(textPart(stream, rest.slice(0, match.index)));
        parts.push(this.moduleBox(left.splice(at, 1)[0]!));
        rest = rest.slice(match.index + match[0].length);
      }
      return [...parts, textPart(stream, rest)];
    });
    const head = notice ? html`<p class="out-notice">${notice}</p>` : nothing;
    render([head, shown, this.extra], this.root);
  }

  private moduleBox(module: Module): TemplateResult {
    const { source } = module;
    const title = module.title.replace(/, line \d+$/, "");
    return html`<details class="shown-module" ?open=${this.modules.length === 1}
      data-title=${module.title}><summary>${title}</summary>
      <pre class="code" tabindex="0" role="group" aria-label=${title}>${once(source, () => highlighted(source))}</pre>
      ${
        this.onOpen
          ? html`<button class="button quiet small" type="button"
              @click=${() => this.onOpen?.(module)}>→ TensorIR view</button>`
          : nothing
      }</details>`;
  }
}

function textPart(stream: Stream, text: string): unknown {
  return text ? html`<pre class="out-${stream}">${displayed(text)}</pre>` : nothing;
}
