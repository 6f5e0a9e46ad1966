/** The program: files in an editor, a console, and the run that joins them. */

import { html, render, type TemplateResult } from "lit-html";
import { historyButton, openHistory } from "../document/history";
import {
  codeCell,
  damagedCells,
  notebookText,
  parseNotebook,
  runsOf,
  withOutputs,
  withoutOutputs,
} from "../document/jupyter";
import { DocumentMemory } from "../document/memory";
import { moment, replay } from "../document/record";
import { byId } from "../dom";
import type { PythonSession } from "../python/client";
import type { ProgramFile, ShownModule } from "../python/wire";
import type { SharedState } from "../share/state";
import type { PageDocument } from "../shell/document";
import { COMMAND } from "../shell/keys";
import type { MenuItem } from "../shell/menu";
import type { Runner } from "../shell/runner";
import { setUpSplitter } from "../shell/splitter";
import { toast } from "../shell/toast";
import { NO_ROOM, Saving } from "../storage";
import { counted } from "../views/format";
import { ConsolePanel } from "./console";
import { Editor } from "./editor";
import { FileTabs } from "./file_tabs";
import {
  freeName,
  isNotebook,
  type ProgramFiles,
  renamed,
  textOf,
  withFile,
  withoutFile,
  withText,
} from "./files";
import firstProgram from "./first_program.py?raw";
import { TypingCheck } from "./help/typing";
import { NotebookPanel } from "./notebook";
import "./program.css";
import { ProgramRun } from "./run";
import { acceptDrops, chooseFiles, download, downloadOther, readFiles } from "./transfer";
import { Workspace } from "./workspace";

const FIRST = "lesson.py";

export class ProgramDocument implements PageDocument {
  readonly id = "program";
  readonly panes = [
    { id: "editor", title: "Program", panel: byId("pane-editor") },
    { id: "console", title: "Console", panel: byId("pane-console") },
  ];
  readonly editor: Editor;
  /** Called when another document of its own is open: the program, or a notebook. */
  onTurn?: () => void;
  /** Called when the page shows something else than the link in its address. */
  onLeaveLink?: () => void;
  private readonly console: ConsolePanel;
  private readonly program: ProgramRun;
  private readonly kept: Promise<DocumentMemory>;
  /** Notebooks that were opened in this visit, by the names of their files. */
  private readonly notebooks = new Map<string, Promise<NotebookPanel | null>>();
  /** How many notebooks of a name were opened. */
  private readonly ids = new Map<string, number>();
  /** The file that the editor holds. */
  private inEditor: string | null = null;
  /** The notebook in the place of the editor. */
  private opened: NotebookPanel | null = null;
  private readonly workspace = new Workspace({
    files: [{ name: FIRST, text: firstProgram }],
    open: FIRST,
  });
  private readonly tabs: FileTabs;
  private readonly typing: TypingCheck;
  private readonly saving = new Saving(() => this.save());
  /** Whether the browser has kept what was stored last. */
  private keeps = true;

  constructor(
    private readonly runner: Runner,
    private readonly session: PythonSession,
    private readonly show: (pane: string) => void,
    private readonly showModule: (module: ShownModule) => void,
  ) {
    this.editor = new Editor({
      parent: byId("editor"),
      onRun: () => this.run(),
      onChange: (text) => {
        this.written(text);
        this.typing.changed(text);
        if (this.workspace.link === null) this.onLeaveLink?.();
      },
      onScroll: () => void this.keepScroll(),
    });
    this.typing = new TypingCheck(session, (diagnostics) => this.editor.mark(diagnostics));
    this.tabs = new FileTabs(byId("files"), {
      onOpen: (name) => this.display({ ...this.files, open: name }),
      onAdd: () => this.add("untitled", ""),
      onRename: (from, to) => void this.rename(from, to),
      onRemove: (name) => this.remove(name),
    });
    this.console = new ConsolePanel(byId("console"), (line, column) => {
      this.show("editor");
      this.editor.goTo(line, column);
    });
    runner.listen(this.console);
    this.program = new ProgramRun(
      runner,
      this.editor,
      this.console,
      (name) => this.files.open === name,
    );
    this.kept = DocumentMemory.open("program");
    void this.kept.then((memory) => this.restore(memory));
    byId("clear").before(historyButton(() => this.kept));
    byId("clear").addEventListener("click", () => this.console.clear());
    byId("reset").addEventListener("click", () => this.reset());
    setUpSplitter(byId("split-rows"), byId("document-program"), {
      property: "split-rows",
      direction: "row",
      label: "Height of the program pane",
      initial: 66,
    });
    // Anywhere: the browser would leave the page, and open the file in its place.
    acceptDrops(document.body, (files) => void this.take(files));
    // A tab that nobody sees may fail before the delay has passed.
    document.addEventListener("visibilitychange", this.saving.now);
    this.display(this.files);
  }

  get files(): ProgramFiles {
    return this.workspace.files;
  }

  async memory(): Promise<DocumentMemory> {
    return (await this.notebook)?.cells.memory ?? this.kept;
  }

  shown(): void {
    this.scrollNotebook();
    if (!isNotebook(this.files.open) && this.workspace.link === null)
      void this.kept.then(({ scroll }) => {
        this.editor.scroll = scroll;
      });
  }

  private scrollNotebook(): void {
    void this.notebook?.then((open) => {
      if (open) open.root.scrollTop = open.cells.memory.scroll;
    });
  }

  /** Keep how far the open file is scrolled, but for a link's. */
  private async keepScroll(): Promise<void> {
    const memory = await this.kept;
    if (this.workspace.link !== null || memory.scroll === this.editor.scroll) return;
    memory.scroll = this.editor.scroll;
    memory.saveSoon();
  }

  get running(): boolean {
    return this.opened ? this.opened.cells.running : this.program.active;
  }

  run(): void {
    if (this.opened) this.opened.cells.run();
    else void this.runProgram();
  }

  /** Show what a link holds; the reader's own files stay where they are. */
  openLink(link: string, { files, open }: SharedState): void {
    this.saving.now();
    this.closeAll();
    this.workspace.openLink(link, { files, open });
    this.display(this.files);
  }

  /** Files in and out, for the page's menu. */
  menu(): MenuItem[] {
    const { open } = this.files;
    const file = { name: open, text: textOf(this.files) };
    return [
      {
        label: "Open files …",
        testId: "file-import",
        run: () => chooseFiles((files) => void this.take(files)),
      },
      { label: `Download ${open}`, testId: "export-python", run: () => this.download(file) },
      {
        label: this.opened ? "Download as Python" : "Download as notebook",
        testId: "export-notebook",
        run: () => downloadOther(file),
      },
      {
        label: "Compare runs …",
        run: () => void this.memory().then((runs) => openHistory(runs, this.opened?.nameOf)),
      },
      { label: "New file", run: () => this.add("untitled", "") },
      {
        label: "New notebook",
        testId: "notebook-add",
        run: () => void this.newNotebook(),
      },
      { label: `Rename ${open}`, run: () => this.tabs.rename(open) },
      { label: "Restore the starter program", run: () => this.reset() },
    ];
  }

  /** Show what the last run of an earlier visit left behind. */
  private async restore(memory: DocumentMemory): Promise<void> {
    this.program.onRecord = (run) => memory.add(run);
    await memory.read;
    const last = memory.latest();
    if (!last || this.program.active || this.program.ran) return;
    this.console.note(`${last.cell} ran ${moment(last.at)}; its variables are gone`, "info");
    replay(last, this.console);
  }

  private async runProgram(): Promise<void> {
    this.show("console");
    this.typing.cancel();
    await this.program.run(this.files);
  }

  /** The editor has another text, by a view perhaps while a notebook is in its place. */
  private written(text: string): void {
    const open = this.inEditor;
    if (open === this.files.open) this.change(withText(this.files, open, text));
    else if (open === null) this.add("untitled", text);
    else this.display({ ...withText(this.files, open, text), open });
  }

  private download({ name, text }: ProgramFile): void {
    const open = this.opened;
    download(name, open ? withOutputs(open.now, (cell) => open.cells.memory.latest(cell)) : text);
  }

  /** Add a file, and open it. */
  add(name: string, text: string): void {
    this.display(withFile(this.files, { name: freeName(name, this.files), text }));
    this.editor.focus();
  }

  private async rename(from: string, to: string): Promise<void> {
    const panel = this.notebooks.get(from);
    if (panel) {
      this.notebooks.delete(from);
      this.notebooks.set(to, panel);
      void (await panel)?.rename(to);
    } else if (isNotebook(from)) await (await DocumentMemory.open(from)).rename(to);
    else {
      this.editor.forget(from);
      this.close(from);
    }
    this.display(renamed(this.files, from, to));
  }

  /** Let go of what a file has defined. */
  private close(name: string): void {
    const panel = this.notebooks.get(name);
    if (panel) {
      this.notebooks.delete(name);
      void panel.then((open) => {
        if (!open) return;
        // What waits to run does not.
        open.cells.set([]);
        this.runner.close(open.cells.memory.id);
      });
    } else if (this.program.ran === name) this.runner.close("program");
  }

  private closeAll(): void {
    for (const { name } of this.files.files) this.close(name);
  }

  private remove(name: string): void {
    const before = this.files;
    this.close(name);
    this.display(withoutFile(before, name));
    toast(`${name} was removed`, { label: "Undo", run: () => this.display(before) });
  }

  private async take(chosen: File[]): Promise<void> {
    const programs = await readFiles(chosen, toast);
    for (const { name, text } of programs) {
      if (isNotebook(name)) this.addNotebook(name, text);
      else this.add(name, text);
    }
    if (programs.length) this.show("editor");
  }

  /** Add a notebook; the outputs that it brings along are kept as runs. */
  private addNotebook(wish: string, text: string): void {
    const name = freeName(wish, this.files);
    const notebook = parseNotebook(text);
    DocumentMemory.create(name, runsOf(notebook, Date.now()));
    this.notebooks.delete(name);
    this.display(withFile(this.files, { name, text: withoutOutputs(notebook) }));
    const damaged = damagedCells(text, notebook);
    if (damaged) toast(`${name}: ${counted(damaged, "damaged cell")} left out`);
  }

  private async newNotebook(): Promise<void> {
    this.addNotebook("untitled.ipynb", notebookText([codeCell()]));
    this.show("editor");
    (await this.notebook)?.cells.cells.peek()[0]?.select();
  }

  /** The notebook that is the open file; null where that is a program. */
  private get notebook(): Promise<NotebookPanel | null> | null {
    const { open } = this.files;
    if (!isNotebook(open)) return null;
    let panel = this.notebooks.get(open);
    if (!panel) {
      const { runner, session } = this;
      const host = {
        runner,
        session,
        showModule: (module: ShownModule) => this.showModule(module),
        openProgram: (name: string, text: string) => this.add(name, text),
      };
      const file = { name: open, text: textOf(this.files) };
      panel = NotebookPanel.open(file, this.newId(open), host, (text, name) =>
        this.change(withText(this.files, name, text)),
      ).catch((error: Error) => {
        toast(`${open}: ${error.message}`);
        return null;
      });
      this.notebooks.set(open, panel);
    }
    return panel;
  }

  /** What Python knows a notebook by: after it was renamed, another may get its name. */
  private newId(name: string): string {
    const count = this.ids.get(name) ?? 0;
    this.ids.set(name, count + 1);
    return count ? `${name} (${count + 1})` : name;
  }

  /** Put the open notebook into the place of the editor, or the editor back. */
  private async showNotebook(): Promise<void> {
    const { open } = this.files;
    byId("document-program").dataset.shows = isNotebook(open) ? "notebook" : "program";
    const panel = (await this.notebook) ?? null;
    if (this.files.open !== open) return;
    const before = this.opened;
    this.opened = panel;
    if (before !== panel) before?.root.remove();
    if (panel && !panel.root.isConnected) byId("editor").after(panel.root);
    this.scrollNotebook();
    if (before !== panel) this.onTurn?.();
  }

  private reset(): void {
    if (this.opened) {
      this.add(FIRST, firstProgram);
      return;
    }
    if (this.editor.text === firstProgram) {
      toast("This is the first program already");
      return;
    }
    this.editor.replace(firstProgram);
    this.editor.underline([]);
    toast(`The first program is back; ${COMMAND}Z in the editor brings yours back`);
  }

  /** Show files: their tabs, and the open one in the editor. */
  private display(files: ProgramFiles): void {
    this.change(files);
    if (!isNotebook(files.open)) {
      this.inEditor = files.open;
      this.editor.open(files.open, textOf(files));
    } else if (!files.files.some(({ name }) => name === this.inEditor)) this.inEditor = null;
    this.tabs.show(files);
    void this.showNotebook();
    this.showNotice();
  }

  private showNotice(): void {
    const notice = byId("shared-notice");
    notice.hidden = this.workspace.link === null;
    if (notice.hidden) return;
    const button = (label: string, testId: string, leave: () => void): TemplateResult =>
      html`<button class="button small" data-testid=${testId}
        @click=${() => this.leaveLink(leave)}>${label}</button>`;
    render(
      html`<p>A shared program. It runs when you press Run.</p>
        ${button("Keep it", "shared-keep", () => this.workspace.keep())}
        ${button("Back to mine", "shared-back", () => this.workspace.back())}`,
      notice,
    );
  }

  private leaveLink(leave: () => void): void {
    this.closeAll();
    leave();
    this.onLeaveLink?.();
    this.display(this.files);
  }

  private change(files: ProgramFiles): void {
    this.workspace.change(files);
    this.saving.soon();
  }

  private save(): void {
    const before = this.files;
    const kept = this.workspace.save((renamed) => {
      const list = renamed.map(([name, now]) => `${name} (now ${now})`).join(", ");
      toast(`Another tab has changed files, too. Its texts are kept beside yours: ${list}`);
    });
    if (!kept && this.keeps) toast(NO_ROOM);
    this.keeps = kept;
    if (this.files !== before) this.showMerged(before);
  }

  /** Show what came from another tab; what is open and the same stays as it is. */
  private showMerged(before: ProgramFiles): void {
    const { open } = this.files;
    if (isNotebook(open)) {
      if (textOf(this.files) !== textOf({ ...before, open })) this.notebooks.delete(open);
      void this.showNotebook();
    } else if (textOf(this.files) !== textOf({ ...before, open })) {
      this.inEditor = open;
      this.editor.open(open, textOf(this.files));
    }
    this.tabs.show(this.files);
  }
}
