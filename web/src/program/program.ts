/** The program: files in an editor, a console, and the run that joins them. */

import { DocumentMemory } from "../document/memory";
import { moment, replay } from "../document/record";
import { byId, element } from "../dom";
import type { PythonSession } from "../python/client";
import type { SharedState } from "../share/state";
import type { PageDocument } from "../shell/document";
import { COMMAND } from "../shell/keys";
import type { MenuItem } from "../shell/menu";
import type { Runner } from "../shell/runner";
import { setUpSplitter } from "../shell/splitter";
import { toast } from "../shell/toast";
import { ConsolePanel } from "./console";
import { Editor } from "./editor";
import { FileTabs } from "./file_tabs";
import {
  freeName,
  type ProgramFiles,
  renamed,
  textOf,
  withFile,
  withoutFile,
  withText,
} from "./files";
import firstProgram from "./first_program.py?raw";
import { TypingCheck } from "./help/typing";
import "./program.css";
import { ProgramRun } from "./run";
import { acceptDrops, chooseFiles, downloadNotebook, downloadPython, readFiles } from "./transfer";
import { Workspace } from "./workspace";

const FIRST = "lesson.py";

/** Milliseconds after the last key until the text is stored. */
const SAVING_DELAY = 300;

export class ProgramDocument implements PageDocument {
  readonly id = "program";
  readonly panes = [
    { id: "editor", title: "Program", panel: byId("pane-editor") },
    { id: "console", title: "Console", panel: byId("pane-console") },
  ];
  readonly editor: Editor;
  /** Called when the page shows something else than the link in its address. */
  onLeaveLink?: () => void;
  private readonly console: ConsolePanel;
  private readonly program: ProgramRun;
  private readonly kept: Promise<DocumentMemory>;
  private readonly workspace = new Workspace({
    files: [{ name: FIRST, text: firstProgram }],
    open: FIRST,
  });
  private readonly tabs: FileTabs;
  private readonly typing: TypingCheck;
  private saving = 0;
  /** Whether the browser has kept what was stored last. */
  private keeps = true;

  constructor(
    runner: Runner,
    session: PythonSession,
    private readonly show: (pane: string) => void,
  ) {
    this.editor = new Editor({
      parent: byId("editor"),
      onRun: () => this.run(),
      onChange: (text) => {
        this.change(withText(this.files, this.files.open, text));
        this.typing.changed(text);
        if (this.workspace.link === null) this.onLeaveLink?.();
      },
    });
    this.typing = new TypingCheck(session, (diagnostics) => this.editor.mark(diagnostics));
    this.tabs = new FileTabs(byId("files"), {
      onOpen: (name) => this.display({ ...this.files, open: name }),
      onAdd: () => this.add("untitled", ""),
      onRename: (from, to) => this.rename(from, to),
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
    byId("clear").addEventListener("click", () => this.console.clear());
    byId("reset").addEventListener("click", () => this.reset());
    setUpSplitter(byId("split-rows"), byId("document-program"), {
      property: "split-rows",
      direction: "row",
      label: "Height of the program pane",
      initial: 66,
    });
    acceptDrops(byId("document-program"), (files) => void this.take(files));
    // A tab may be closed, or fail, before the delay has passed.
    addEventListener("pagehide", () => this.save());
    document.addEventListener("visibilitychange", () => this.save());
    this.display(this.files);
  }

  get files(): ProgramFiles {
    return this.workspace.files;
  }

  memory(): Promise<DocumentMemory> {
    return this.kept;
  }

  get running(): boolean {
    return this.program.active;
  }

  run(): void {
    void this.runProgram();
  }

  /** Show what a link holds; the reader's own files stay where they are. */
  openLink(link: string, { files, open }: SharedState): void {
    this.save();
    this.workspace.openLink(link, { files, open });
    this.display(this.files);
  }

  /** Files in and out, for the page's menu. */
  menu(): MenuItem[] {
    const { open } = this.files;
    const file = { name: open, text: this.editor.text };
    return [
      {
        label: "Open files …",
        testId: "file-import",
        run: () => chooseFiles((files) => void this.take(files)),
      },
      { label: `Download ${open}`, testId: "export-python", run: () => downloadPython(file) },
      {
        label: "Download as notebook",
        testId: "export-notebook",
        run: () => downloadNotebook(file),
      },
      { label: "New file", run: () => this.add("untitled", "") },
      { label: `Rename ${open}`, run: () => this.tabs.rename(open) },
      { label: "Restore the starter program", run: () => this.reset() },
    ];
  }

  /** Show what the last run of an earlier visit left behind. */
  private restore(memory: DocumentMemory): void {
    this.program.onRecord = (run) => memory.add(run);
    const last = memory.latest();
    if (!last || this.running) return;
    this.console.note(`${last.cell} ran ${moment(last.at)}; its variables are gone`, "info");
    replay(last, this.console);
  }

  private async runProgram(): Promise<void> {
    this.show("console");
    this.typing.cancel();
    await this.program.run(this.files);
  }

  /** Add a file, and open it. */
  add(name: string, text: string): void {
    this.display(withFile(this.files, { name: freeName(name, this.files), text }));
    this.editor.focus();
  }

  private rename(from: string, to: string): void {
    this.editor.forget(from);
    this.display(renamed(this.files, from, to));
  }

  private remove(name: string): void {
    const before = this.files;
    this.display(withoutFile(before, name));
    toast(`${name} was removed`, { label: "Undo", run: () => this.display(before) });
  }

  private async take(chosen: File[]): Promise<void> {
    const programs = await readFiles(chosen, toast);
    for (const { name, text } of programs) this.add(name, text);
    if (programs.length) this.show("editor");
  }

  private reset(): void {
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
    this.editor.open(files.open, textOf(files));
    this.tabs.show(files);
    this.showNotice();
  }

  private showNotice(): void {
    const notice = byId("shared-notice");
    notice.hidden = this.workspace.link === null;
    if (notice.hidden) return;
    const keep = element(
      "button",
      { class: "button small", "data-testid": "shared-keep" },
      "Keep it",
    );
    const back = element(
      "button",
      { class: "button small", "data-testid": "shared-back" },
      "Back to mine",
    );
    keep.addEventListener("click", () => this.leaveLink(() => this.workspace.keep()));
    back.addEventListener("click", () => this.leaveLink(() => this.workspace.back()));
    notice.replaceChildren(
      element("p", {}, "A shared program. It runs when you press Run."),
      keep,
      back,
    );
  }

  private leaveLink(leave: () => void): void {
    leave();
    this.onLeaveLink?.();
    this.display(this.files);
  }

  private change(files: ProgramFiles): void {
    this.workspace.change(files);
    clearTimeout(this.saving);
    this.saving = window.setTimeout(() => this.save(), SAVING_DELAY);
  }

  private save(): void {
    clearTimeout(this.saving);
    const before = this.files;
    const kept = this.workspace.save((renamed) => {
      const list = renamed.map(([name, now]) => `${name} (now ${now})`).join(", ");
      toast(`Another tab has changed files, too. Its texts are kept beside yours: ${list}`);
    });
    if (!kept && this.keeps)
      toast("The browser has no room for your files: what you write is lost with this tab");
    this.keeps = kept;
    if (this.files !== before) this.showMerged(before);
  }

  /** Show what came from another tab; what is open and the same stays as it is. */
  private showMerged(before: ProgramFiles): void {
    const { open } = this.files;
    if (textOf(this.files) !== textOf({ ...before, open }))
      this.editor.open(open, textOf(this.files));
    this.tabs.show(this.files);
  }
}
