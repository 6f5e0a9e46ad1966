/** A notebook in the place of the editor: its texts, and its cells with their outputs. */

import { DocumentCell } from "../document/cell";
import { CellList } from "../document/cells";
import { historyButton } from "../document/history";
import { type Notebook, parseNotebook, sourceOf } from "../document/jupyter";
import { DocumentMemory } from "../document/memory";
import { element } from "../dom";
import { highlighted } from "../highlight";
import type { PythonSession } from "../python/client";
import type { ShownModule } from "../python/wire";
import type { Runner } from "../shell/runner";
import "../lessons/lesson.css";

interface NotebookHost {
  runner: Runner;
  session: PythonSession;
  showModule(module: ShownModule): void;
  openProgram(name: string, text: string): void;
}

export class NotebookPanel {
  readonly root: HTMLElement;

  private constructor(
    readonly notebook: Notebook,
    readonly cells: CellList,
    texts: Map<number, string>,
    host: NotebookHost,
  ) {
    const runAll = element(
      "button",
      { class: "button small", type: "button", "data-testid": "notebook-run-all" },
      "Run all",
    );
    runAll.addEventListener("click", () => void cells.runAll());
    const body = element("article", { class: "lesson-text", "aria-label": cells.memory.id });
    let number = 0;
    for (const [at, each] of notebook.cells.entries()) {
      if (each.cell_type === "code") {
        number += 1;
        const source = sourceOf(each);
        const code = highlighted(source).innerHTML;
        const shown = { number, source, code, folded: false, exercise: null };
        const cell = new DocumentCell(shown, undefined, cells.actions, true);
        cell.output.onOpen = (module) => host.showModule({ id: "notebook", ...module });
        cells.add(cell);
        body.append(cell.root);
      } else {
        const prose = element("div", { class: "lesson-prose" });
        prose.innerHTML = texts.get(at) ?? "";
        body.append(prose);
      }
    }
    this.root = element(
      "div",
      { class: "pane-lesson notebook", "data-testid": "notebook" },
      element(
        "div",
        { class: "lesson-nav" },
        element("span", { class: "lesson-menu" }, cells.memory.id),
        historyButton(async () => cells.memory),
        runAll,
      ),
      body,
    );
    this.root.addEventListener("scroll", () => {
      if (!this.root.clientHeight) return;
      cells.memory.scroll = this.root.scrollTop;
      cells.memory.saveSoon();
    });
  }

  /** The notebook of a file; `onChange` hears of its text whenever a cell is edited. */
  static async open(
    name: string,
    text: string,
    host: NotebookHost,
    onChange: (text: string) => void,
  ): Promise<NotebookPanel> {
    const notebook = parseNotebook(text);
    const [memory, texts] = await Promise.all([DocumentMemory.open(name), rendered(notebook)]);
    const cells = new CellList(host.runner, host.session, memory, {
      changed: () => onChange(JSON.stringify(edited(notebook, cells))),
      ran: () => undefined,
      passed: () => undefined,
      openInEditor: (program) => host.openProgram(name.replace(/ipynb$/, "py"), program),
    });
    return new NotebookPanel(notebook, cells, texts, host);
  }

  /** The notebook as it stands. */
  get now(): Notebook {
    return edited(this.notebook, this.cells);
  }
}

/** The notebook with the cells as the reader has made them. */
function edited(notebook: Notebook, { cells }: CellList): Notebook {
  let at = 0;
  return {
    ...notebook,
    cells: notebook.cells.map((cell) =>
      cell.cell_type === "code" ? { ...cell, source: cells[at++]!.source.split(/(?<=\n)/) } : cell,
    ),
  };
}

/** Text cells as HTML, by their place; tags in them stay text. */
async function rendered({ cells }: Notebook): Promise<Map<number, string>> {
  const { default: MarkdownIt } = await import("markdown-it");
  const markdown = new MarkdownIt({ html: false });
  // The page has a heading of its own above.
  const lower = (tag: string): string => `h${Math.min(6, Number(tag.slice(1)) + 1)}`;
  markdown.renderer.rules.heading_open = (tokens, index) => `<${lower(tokens[index]!.tag)}>`;
  markdown.renderer.rules.heading_close = (tokens, index) => `</${lower(tokens[index]!.tag)}>`;
  const found = new Map<number, string>();
  for (const [at, cell] of cells.entries())
    if (cell.cell_type === "markdown") found.set(at, markdown.render(sourceOf(cell)));
  return found;
}
