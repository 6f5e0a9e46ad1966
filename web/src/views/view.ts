/** What every view is: a panel that shows results of runs. */

import type { ReadonlySignal } from "@preact/signals-core";
import type { Editor } from "../program/editor";
import type { PythonSession } from "../python/client";
import type { RunResult } from "../python/wire";

export interface View {
  /** Names the tab (`tab-<id>`) and the panel (`view-<id>`). */
  readonly id: string;
  readonly title: string;
  readonly panel: HTMLElement;
  /** A program has run: show what it left behind. */
  onResult?(result: RunResult): void;
  /** Python was started again, so nothing it held can be asked for any more. */
  onRestart?(): void;
  /** The panel has become visible. */
  onShow?(): void;
  /** What a link has to hold so that `restore` shows the same: plain JSON, null for nothing. */
  state?(): unknown;
  /** Show what `state` told elsewhere, once the program has run; undefined if the link holds nothing. */
  restore?(state: unknown): void;
}

/** What the page offers to its views. */
export interface ViewContext {
  session: PythonSession;
  editor: Editor;
  /**
   * Do something that the reader asks, when all that was asked before is done. The page runs `what`
   * while `work` goes on; `stop` is what the Stop button does.
   */
  during<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T>;
  /** Show that the view looks something up by itself (`session.look`), which may take long. */
  looking<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T>;
  /** Whether something runs that the reader has asked. */
  readonly busy: ReadonlySignal<boolean>;
  /** Bring a view or the editor to the front. */
  show(pane: string): void;
  toast(message: string): void;
}

export type ViewFactory = (context: ViewContext) => View;
