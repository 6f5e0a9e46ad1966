/** The views show what the open document has left behind, and come back to where they were. */

import type { DocumentMemory } from "../document/memory";
import type { PythonSession } from "../python/client";
import type { RunResult, ShownModule } from "../python/protocol";
import { showResult } from "../views/following";
import type { View } from "../views/view";

/** The result of a run that shows nothing. */
const NOTHING: RunResult = {
  ok: true,
  error: null,
  elapsedMs: 0,
  modules: [],
  traces: [],
  programs: [],
  searchFunctions: [],
  searchModules: [],
};

export class DocumentViews {
  /** The last result, which is the one that Python can be asked about. */
  private live: { owner: string; result: RunResult } | null = null;
  private open: DocumentMemory | null = null;

  constructor(
    private readonly views: readonly View[],
    private readonly session: PythonSession,
    private readonly show: (view: string) => void,
  ) {
    session.on("restarted", () => {
      this.live = null;
    });
  }

  /** A document has run. */
  take(result: RunResult, owner: string): void {
    this.live = { owner, result };
    if (!this.open || this.open.id === owner) showResult(this.views, this.session, result);
  }

  /** Show what a document has left behind; null for one that leaves nothing. */
  turnTo(memory: DocumentMemory | null): void {
    const before = this.open;
    if (!memory || memory.id === before?.id) return;
    this.open = memory;
    const modules = memory.latest()?.modules ?? [];
    if (this.live?.owner === memory.id) showResult(this.views, this.session, this.live.result);
    else if (before) {
      showResult(this.views, this.session, NOTHING);
      this.showModules(modules);
    } else if (modules.length) this.showModules(modules);
    if (memory.view) this.show(memory.view);
  }

  /** The reader has brought a view to the front. */
  opened(view: string): void {
    if (!this.open || this.open.view === view) return;
    this.open.view = view;
    this.open.saveSoon();
  }

  showModules(modules: ShownModule[]): void {
    this.views.find(({ id }) => id === "tensorir")?.onResult?.({ ...NOTHING, modules });
  }
}
