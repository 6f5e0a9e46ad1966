/** Diagnostics while a program is written: it is checked whenever its writer pauses. */

import type { PythonSession } from "../../python/client";
import type { Diagnostic } from "../../python/wire";

/** Milliseconds of rest after which a program is checked. */
const REST = 600;

export class TypingCheck {
  private timer = 0;
  private text: string | null = null;

  constructor(
    private readonly session: PythonSession,
    private readonly show: (diagnostics: Diagnostic[]) => void,
    private readonly document = "program",
  ) {
    // What was written while Python was busy is checked after that.
    session.on("state", () => this.wait());
  }

  /** The program has become `text`. */
  changed(text: string): void {
    this.text = text;
    this.wait();
  }

  /** The program runs: that tells more than a check. */
  cancel(): void {
    clearTimeout(this.timer);
    this.text = null;
  }

  private wait(): void {
    clearTimeout(this.timer);
    if (this.text !== null) this.timer = window.setTimeout(() => void this.check(), REST);
  }

  private async check(): Promise<void> {
    const { session, text } = this;
    if (text === null || session.state !== "ready") return;
    if (session.busy) {
      this.wait();
      return;
    }
    this.text = null;
    try {
      const diagnostics = await session.look(null, "checking.check", this.document, text);
      // Written on meanwhile: the next check tells.
      if (this.text === null) this.show(diagnostics);
    } catch {
      // Python was stopped; the next change asks again.
    }
  }
}
