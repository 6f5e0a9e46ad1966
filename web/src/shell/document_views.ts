/** The views show what the open document has left behind, and come back to where they were. */

import type { DocumentMemory } from "../document/memory";
import type { PythonSession } from "../python/client";
import type { RunResult, ShownModule } from "../python/wire";
import { showResult } from "../views/following";
import type { View } from "../views/view";

/** The result of a run that shows nothing. */
const nothing = (document: string): RunResult => ({
  document,
  ok: true,
  error: null,
  elapsedMs: 0,
  modules: [],
  traces: [],
  programs: [],
  searchFunctions: [],
  searchModules: [],
});

export class DocumentViews {
  /** The last result of each document, which Python can be asked about. */
  private readonly live = new Map<string, RunResult>();
  private open: DocumentMemory | null = null;

  constructor(
    private readonly views: readonly View[],
    private readonly session: PythonSession,
    private readonly show: (view: string) => void,
  ) {
    session.on("restarted", () => {
      this.live.clear();
    });
  }

  /** A document has run. */
  take(result: RunResult, owner: string): void {
    this.live.set(owner, result);
    if (!this.open || this.open.id === owner) showResult(this.views, this.session, result);
  }

  /** Show what a document has left behind; null for one that leaves nothing. */
  turnTo(memory: DocumentMemory | null): void {
    const before = this.open;
    if (!memory || memory.id === before?.id) return;
    this.open = memory;
    const modules = memory.latest()?.modules ?? [];
    const result = this.live.get(memory.id);
    if (result) showResult(this.views, this.session, result);
    else if (before) {
      showResult(this.views, this.session, nothing(memory.id));
      this.showModules(modules);
    } else if (modules.length) this.showModules(modules);
    if (memory.view) this.show(memory.view);
  }

  /** A document is left for good; what it has shown cannot be asked about any more. */
  close(id: string): void {
    if (this.live.delete(id) && this.open?.id === id)
      for (const view of this.views) view.onResult?.(nothing(id));
  }

  /** The reader has brought a view to the front. */
  opened(view: string): void {
    if (!this.open || this.open.view === view) return;
    this.open.view = view;
    this.open.saveSoon();
  }

  showModules(modules: ShownModule[]): void {
    this.views
      .find(({ id }) => id === "tensorir")
      ?.onResult?.({ ...nothing(this.open?.id ?? ""), modules });
  }
}
