/** A notebook in the place of the editor: its texts, and its cells with their outputs. */

import { type Signal, signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { type CellKind, DocumentCell } from "../document/cell";
import { CellList } from "../document/cells";
import { KEYS, NotebookEditing } from "../document/editing";
import { historyButton } from "../document/history";
import {
  codeCell,
  type Notebook,
  type NotebookCell,
  parseNotebook,
  rewritten,
  sourceOf,
  withAttachments,
} from "../document/jupyter";
import { DocumentMemory } from "../document/memory";
import { element } from "../dom";
import type { PythonSession } from "../python/client";
import type { ProgramFile, ShownModule } from "../python/wire";
import type { Runner } from "../shell/runner";
import { toast } from "../shell/toast";
import { reactive } from "../views/kit";
import "../lessons/lesson.css";
import "./notebook.css";

interface NotebookHost {
  runner: Runner;
  session: PythonSession;
  showModule(module: ShownModule): void;
  openProgram(name: string, text: string): void;
}

export class NotebookPanel {
  readonly root = element("div", { class: "pane-lesson notebook", "data-testid": "notebook" });
  readonly cells: CellList;
  /** Of its file. */
  readonly name: Signal<string>;
  private readonly editing: NotebookEditing;
  /** What the file has of each cell beside its text, by the cell's name. */
  private readonly files = new Map<string, NotebookCell>();

  private constructor(
    name: string,
    private readonly notebook: Notebook,
    memory: DocumentMemory,
    markdown: (text: string) => string,
    private readonly host: NotebookHost,
    onChange: (text: string, name: string) => void,
  ) {
    this.name = signal(name);
    this.cells = new CellList(host.runner, host.session, memory, {
      counts: true,
      changed: () => onChange(JSON.stringify(this.now), this.name.peek()),
      openInEditor: (program) =>
        host.openProgram(this.name.peek().replace(/ipynb$/, "py"), program),
    });
    const fresh = (kind: CellKind, source: string): DocumentCell =>
      this.cell(rewritten(codeCell(), kind, source));
    const rendered = (cell: DocumentCell, text: string): string =>
      markdown(withAttachments(text, this.files.get(cell.id)));
    this.editing = new NotebookEditing(this.cells, fresh, rendered, (message, run) =>
      toast(message, { label: "Undo", run }),
    );
    this.cells.set(notebook.cells.map((each) => this.cell(each)));
    const [first] = this.cells.cells.peek();
    if (first) this.cells.moveTo(first);
    const runs = historyButton(async () => memory, this.nameOf);
    reactive(this.root, () => this.template(runs));
    this.root.addEventListener("scroll", () => {
      if (!this.root.clientHeight) return;
      memory.scroll = this.root.scrollTop;
      memory.saveSoon();
    });
  }

  /**
   * The notebook of a file, known to Python and the views by `id`; `onChange` hears of its text, and
   * what its file is called then, whenever something in it changes.
   */
  static async open(
    { name, text }: ProgramFile,
    id: string,
    host: NotebookHost,
    onChange: (text: string, name: string) => void,
  ): Promise<NotebookPanel> {
    const notebook = parseNotebook(text);
    const [memory, markdown] = await Promise.all([DocumentMemory.open(name, id), renderer()]);
    return new NotebookPanel(name, notebook, memory, markdown, host, onChange);
  }

  /** Its file has another name: what has run, runs and waits to run goes on. */
  async rename(name: string): Promise<void> {
    this.name.value = name;
    await this.cells.memory.rename(name);
  }

  /** The notebook as it stands. */
  get now(): Notebook {
    const cells = this.cells.cells.peek();
    return {
      ...this.notebook,
      cells: cells.map((cell) =>
        rewritten(this.files.get(cell.id)!, cell.kind.peek(), cell.source),
      ),
    };
  }

  /** What a cell is called now, by its name in the file. */
  readonly nameOf = (id: string): string => {
    const named = this.cells.cells.peek().find((cell) => cell.id === id);
    return named ? `cell ${named.number.peek()}` : "a deleted cell";
  };

  private cell(file: NotebookCell): DocumentCell {
    const kind = file.cell_type === "code" ? "code" : "text";
    const { cells, editing, host } = this;
    const initial = { id: file.id, source: sourceOf(file), kind } as const;
    this.files.set(file.id, file);
    const cell = new DocumentCell(initial, undefined, cells.actions, editing);
    cell.output.onOpen = (module) => host.showModule({ id: "notebook", ...module });
    return cell;
  }

  private template(runs: HTMLElement): TemplateResult {
    const cells = this.cells.cells.value;
    const last = cells.length;
    return html`<div class="lesson-nav">
        <span class="lesson-menu">${this.name.value}</span>
        ${runs}
        <button class="button small" type="button" data-testid="notebook-run-all"
          @click=${() => this.cells.runAll()}>Run all</button>
      </div>
      <p class="visually-hidden" role="status" data-testid="notebook-said">${this.editing.said.value}</p>
      <article class="lesson-text" aria-label=${this.name.value} aria-describedby="notebook-keys">
        ${repeat(
          cells,
          (cell) => cell,
          (cell, at) => [at ? this.gap(at, "between") : "", cell.root],
        )}
        ${this.gap(last, "end")}
        <details class="lesson-hint notebook-keys"><summary>Keys</summary>
          <dl id="notebook-keys">${KEYS.map(([keys, what]) => html`<div><dt>${keys}</dt><dd>${what}</dd></div>`)}</dl>
        </details>
      </article>`;
  }

  /** Buttons for a new cell; between cells they show when pointed at, since keys have A and B. */
  private gap(at: number, where: "between" | "end"): TemplateResult {
    const add = (kind: CellKind): TemplateResult => html`<button class="button small" type="button"
      tabindex=${where === "end" ? 0 : -1} data-testid=${`add-${kind}-${where}`}
      aria-label=${`Add ${kind} ${where === "end" ? "at the end" : `as cell ${at + 1}`}`}
      @click=${() => this.editing.add(at, kind)}>+ ${kind === "code" ? "Code" : "Text"}</button>`;
    return html`<div class="cell-gap ${where}">${add("code")}${add("text")}</div>`;
  }
}

/** What makes HTML of Markdown; tags in it stay text. */
async function renderer(): Promise<(text: string) => string> {
  const { default: MarkdownIt } = await import("markdown-it");
  const markdown = new MarkdownIt({ html: false });
  // The page has a heading of its own above.
  const lower = (tag: string): string => `h${Math.min(6, Number(tag.slice(1)) + 1)}`;
  markdown.renderer.rules.heading_open = (tokens, index) => `<${lower(tokens[index]!.tag)}>`;
  markdown.renderer.rules.heading_close = (tokens, index) => `</${lower(tokens[index]!.tag)}>`;
  return (text) => markdown.render(text) || "<p class='empty-text'>Empty text</p>";
}
