/** Running the open file of an editor: its output in a console, its errors underlined in the text. */

import { Recorder, type RunRecord, recordOf } from "../document/record";
import type { Runner } from "../shell/runner";
import type { ConsolePanel } from "./console";
import type { Editor } from "./editor";
import { isNotebook, type ProgramFiles, textOf, withText } from "./files";

export class ProgramRun {
  /** Whether a program runs, or waits to. */
  active = false;
  /** The file that ran last, whose names Python has. */
  ran: string | null = null;
  /** Called with what a run has left behind. */
  onRecord?: (run: RunRecord) => void;
  /** What was asked for and has not begun; asked once more, the newer text runs. */
  private waiting: ProgramFiles | null = null;

  /** `isOpen` says, once the program has ended, whether the editor still shows that file. */
  constructor(
    private readonly runner: Runner,
    private readonly editor: Editor,
    private readonly console: ConsolePanel,
    private readonly isOpen: (name: string) => boolean = () => true,
  ) {}

  /** Run the open one of `files`, whose text is the editor's. */
  async run(files: ProgramFiles): Promise<void> {
    const waits = this.waiting !== null;
    this.waiting = withText(files, files.open, this.editor.text);
    if (waits) return;
    this.active = true;
    await this.runner.ask(`Running ${files.open}`, async (job) => {
      const now = this.waiting!;
      const { open } = now;
      this.waiting = null;
      this.ran = open;
      this.console.clear();
      this.editor.underline([]);
      const others = now.files.filter(({ name }) => name !== open && !isNotebook(name));
      const source = textOf(now);
      const recorder = new Recorder(this.console);
      const result = await this.runner.run(job, source, open, recorder, others);
      if (result) this.onRecord?.(recordOf(open, source, result, recorder));
      if (result?.error && result.error.kind !== "KeyboardInterrupt" && this.isOpen(open))
        this.editor.underline(result.error.diagnostics);
      this.active = this.waiting !== null;
    });
  }
}
