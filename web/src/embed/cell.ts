/** A program in a frame: its editor, and its console below. */

import { element } from "../dom";
import { ConsolePanel } from "../program/console";
import { Editor } from "../program/editor";
import { ProgramRun } from "../program/run";
import { BadLink, decode } from "../share/state";
import { toast } from "../shell/toast";
import type { FrameContent, FrameHost } from "./frame";
import type { CellOptions } from "./messages";

const EMPTY: CellOptions = { files: [{ name: "lesson.py", text: "" }], open: "lesson.py" };

/** The program `given` by the page around, or else the one of the frame's own address, `code`. */
export async function cellContent(
  { runner }: FrameHost,
  given: CellOptions | null,
  code: string | null,
): Promise<FrameContent> {
  const { files, open } = given ?? (await sharedIn(code)) ?? EMPTY;
  const others = files.filter(({ name }) => name !== open);
  const editorBox = element("div", { class: "editor", "data-testid": "editor" });
  const consoleBox = element("div", {
    class: "console",
    "data-testid": "console",
    role: "log",
    tabindex: "0",
    "aria-label": "Output",
  });
  const run = (): void => void program.run({ files, open });
  const editor = new Editor({
    parent: editorBox,
    onRun: run,
    onChange: () => undefined,
  });
  editor.open(open, files.find(({ name }) => name === open)?.text ?? "");
  const console = new ConsolePanel(consoleBox, (line, column) => editor.goTo(line, column));
  runner.listen(console);
  const program = new ProgramRun(runner, editor, console);
  return {
    root: element("div", { class: "embed-cell" }, editorBox, consoleBox),
    editor,
    get running() {
      return program.active;
    },
    run,
    shared: () => ({ version: 1, files: [{ name: open, text: editor.text }, ...others], open }),
  };
}

/** The program in the frame's own address; null where there is none that can be read. */
async function sharedIn(code: string | null): Promise<CellOptions | null> {
  if (code === null) return null;
  try {
    return await decode(code);
  } catch (error) {
    if (!(error instanceof BadLink)) throw error;
    toast(error.message);
    return null;
  }
}
