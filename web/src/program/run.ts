/** Running the open file of an editor: its output in a console, its errors underlined in the text. */

import type { Runner } from "../shell/runner";
import type { ConsolePanel } from "./console";
import type { Editor } from "./editor";
import type { ProgramFiles } from "./files";

/** `isOpen` says, once the program has ended, whether the editor still shows that file. */
export async function runOpenFile(
  runner: Runner,
  editor: Editor,
  console: ConsolePanel,
  { files, open }: ProgramFiles,
  isOpen: (name: string) => boolean = () => true,
): Promise<void> {
  console.clear();
  editor.underline([]);
  const others = files.filter(({ name }) => name !== open);
  const result = await runner.run(editor.text, open, console, others);
  if (result?.error && result.error.kind !== "KeyboardInterrupt" && isOpen(open)) {
    editor.underline(result.error.diagnostics);
  }
}
