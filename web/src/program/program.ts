/** The program: an editor and a console, and the run that joins them. */

import { byId } from "../dom";
import type { PageDocument } from "../shell/document";
import type { Runner } from "../shell/runner";
import { setUpSplitter } from "../shell/splitter";
import { toast } from "../shell/toast";
import { recall, remember } from "../storage";
import { ConsolePanel } from "./console";
import { Editor } from "./editor";
import firstProgram from "./first_program.py?raw";
import "./program.css";

const FILENAME = "lesson.py";

/** Milliseconds after the last key until the text is stored. */
const SAVING_DELAY = 300;

export class ProgramDocument implements PageDocument {
  readonly id = "program";
  readonly panes = [
    { id: "editor", title: "Program", panel: byId("pane-editor") },
    { id: "console", title: "Console", panel: byId("pane-console") },
  ];
  readonly editor: Editor;
  private readonly console: ConsolePanel;
  private saving = 0;

  constructor(
    private readonly runner: Runner,
    private readonly show: (pane: string) => void,
  ) {
    this.editor = new Editor({
      parent: byId("editor"),
      text: recall("program") ?? firstProgram,
      onRun: () => this.run(),
      onChange: (text) => this.saveSoon(text),
    });
    this.console = new ConsolePanel(byId("console"), (line, column) => {
      this.show("editor");
      this.editor.goTo(line, column);
    });
    runner.listen(this.console);
    byId("clear").addEventListener("click", () => this.console.clear());
    byId("reset").addEventListener("click", () => this.reset());
    setUpSplitter(byId("split-rows"), byId("document-program"), {
      property: "split-rows",
      direction: "row",
      label: "Height of the program pane",
      initial: 66,
    });
  }

  run(): void {
    void this.runProgram();
  }

  private async runProgram(): Promise<void> {
    if (this.runner.busy) return;
    this.show("console");
    this.console.clear();
    this.editor.underline([]);
    const result = await this.runner.run(this.editor.text, FILENAME, this.console);
    if (result?.error && result.error.kind !== "KeyboardInterrupt") {
      this.editor.underline(result.error.diagnostics);
    }
  }

  private reset(): void {
    if (this.editor.text === firstProgram) {
      toast("This is the lesson’s program");
      return;
    }
    this.editor.replace(firstProgram);
    this.editor.underline([]);
    const undo = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘Z" : "Ctrl Z";
    toast(`The lesson’s program is back; ${undo} in the editor brings yours back`);
  }

  private saveSoon(text: string): void {
    clearTimeout(this.saving);
    this.saving = window.setTimeout(
      () => remember("program", text === firstProgram ? null : text),
      SAVING_DELAY,
    );
  }
}
