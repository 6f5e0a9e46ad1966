/** A cell of a document: code that becomes an editor when it is touched, and what it printed. */

import { element } from "../dom";
import { Editor } from "../program/editor";
import { duration } from "../views/format";
import { CellOutput } from "./output";
import { type RunRecord, replay } from "./record";

/** `lost`: it has run, but in a Python that is gone; `waiting`: for what was asked before it. */
export type CellState = "idle" | "waiting" | "running" | "done" | "failed" | "lost";

/** A cell to run. */
export interface CellCode {
  /** Its place among the cells, from 1. */
  number: number;
  source: string;
  /** The source as highlighted HTML, one element per line. */
  code: string;
  folded: boolean;
  /** What checks it, where it is an exercise. */
  exercise: string | null;
}

export interface CellActions {
  /** Run the cell, and check it if it is an exercise and `check` is asked. */
  run(cell: DocumentCell, check: boolean): void;
  runAbove(cell: DocumentCell): void;
  openInEditor(cell: DocumentCell): void;
  changed(cell: DocumentCell): void;
  current(cell: DocumentCell): void;
}

export class DocumentCell {
  readonly root: HTMLElement;
  readonly output = new CellOutput();
  private readonly place = element("div", { class: "cell-code" });
  private readonly status = element("span", { class: "cell-status" });
  private readonly verdict = element("div", {
    class: "lesson-check",
    "data-testid": "lesson-check",
    "data-state": "idle",
    role: "status",
  });
  private readonly reset: HTMLButtonElement;
  private editor: Editor | null = null;
  private text: string;
  private now: CellState = "idle";
  /** Its state before it waited. */
  private before: CellState = "idle";
  private reason: string | null = null;
  /** Its last run in this session. */
  run: RunRecord | null = null;

  constructor(
    readonly code: CellCode,
    edited: string | undefined,
    private readonly actions: CellActions,
    opens: boolean,
  ) {
    const { number, exercise, folded } = code;
    this.text = edited ?? code.source;
    const action = (
      label: string,
      name: string,
      run: () => void,
      kind = "quiet",
    ): HTMLButtonElement => {
      const button = element(
        "button",
        { class: `button small ${kind}`, type: "button", "aria-label": name },
        label,
      );
      button.addEventListener("click", run);
      return button;
    };
    const run = action(
      "Run",
      `Run cell ${number}`,
      () => actions.run(this, false),
      exercise ? "" : "cell-run",
    );
    run.dataset.testid = "cell-run";
    const check = action(
      "Check",
      `Check cell ${number}`,
      () => actions.run(this, true),
      "cell-run",
    );
    check.dataset.testid = "cell-check";
    this.reset = action("Reset", `Reset cell ${number}`, () => this.replace(code.source));
    this.reset.dataset.testid = "cell-reset";
    const above = action("Run all above", `Run all above cell ${number}`, () =>
      actions.runAbove(this),
    );
    above.dataset.testid = "cell-above";
    const open = action("Open in editor", `Open in editor: cell ${number} and those above`, () =>
      actions.openInEditor(this),
    );
    open.dataset.testid = "cell-open";
    const bar = element(
      "div",
      { class: "cell-bar" },
      run,
      exercise ? check : null,
      this.status,
      element(
        "span",
        { class: "cell-more" },
        this.reset,
        number > 1 ? above : null,
        opens ? open : null,
      ),
    );
    const inside = folded
      ? element(
          "details",
          { class: "cell-fold" },
          element("summary", {}, "Show the code"),
          this.place,
        )
      : this.place;
    this.root = element(
      "section",
      {
        class: "lesson-cell",
        "data-testid": "lesson-cell",
        "data-number": number,
        "aria-label": `Cell ${number}`,
      },
      inside,
      bar,
      this.output.root,
      exercise ? this.verdict : null,
    );
    this.root.addEventListener("focusin", () => actions.current(this));
    // Before the editor sees it: there, Shift-Enter would break the line.
    this.root.addEventListener("keydown", (event) => this.runByKey(event), { capture: true });
    if (this.text === code.source) this.showStatic();
    else this.edit();
    this.markEdited();
    this.state = "idle";
  }

  get source(): string {
    return this.text;
  }

  get edited(): boolean {
    return this.text !== this.code.source;
  }

  get state(): CellState {
    return this.now;
  }

  set state(state: CellState) {
    this.now = state;
    this.showState();
  }

  /** Why its output is not that of its code as things are; null where it is. */
  set stale(reason: string | null) {
    if (this.reason === reason) return;
    this.reason = reason;
    this.showState();
  }

  private showState(): void {
    const { now } = this;
    const stale = now === "lost" ? "not run in this session" : now === "done" ? this.reason : null;
    this.root.dataset.state = stale ? "stale" : now;
    const busy = now === "running" || now === "waiting" ? `${now} …` : "";
    const took = now === "done" && this.run ? duration(this.run.elapsedMs) : "";
    this.status.textContent = busy || (stale ?? took);
  }

  /** Show the result of a run, and where it went wrong. */
  finish(run: RunRecord): void {
    const { ok, error, modules } = run;
    this.run = run;
    this.output.show(modules);
    this.state = ok ? "done" : "failed";
    if (error && error.kind !== "KeyboardInterrupt") {
      this.root.querySelector("details")?.setAttribute("open", "");
      this.edit().underline(error.diagnostics);
    }
  }

  /** Show what a run of an earlier visit left behind. */
  restore(run: RunRecord): void {
    this.output.clear();
    replay(run, this.output);
    this.output.show(run.modules);
    this.state = "lost";
  }

  /** A run was asked for, and begins when it is its turn. */
  wait(): void {
    if (this.now === "running" || this.now === "waiting") return;
    this.before = this.now;
    this.state = "waiting";
  }

  /** It does not run after all. */
  leave(): void {
    if (this.now === "waiting") this.state = this.before;
  }

  /** What it has defined is gone. */
  lose(): void {
    this.run = null;
    if (this.now === "waiting") {
      if (this.before !== "idle") this.before = "lost";
    } else if (this.now !== "idle") this.state = "lost";
  }

  /** A run begins. */
  begin(): void {
    this.output.clear();
    this.editor?.underline([]);
    this.judge("idle", "");
    this.state = "running";
  }

  judge(state: "pass" | "fail" | "idle", message: string): void {
    this.verdict.dataset.state = state;
    this.verdict.replaceChildren();
    if (state === "idle") return;
    this.verdict.append(
      element("strong", {}, state === "pass" ? "Solved." : "Not yet."),
      ` ${message}`,
    );
  }

  /** Other text for the cell; undo brings the reader's own back. */
  replace(source: string): void {
    const editor = this.edit();
    editor.replace(source);
    editor.underline([]);
    this.take(source);
  }

  focus(): void {
    if (this.editor) this.editor.focus();
    else this.place.querySelector<HTMLElement>("pre")?.focus();
  }

  private take(text: string): void {
    this.text = text;
    this.markEdited();
    this.actions.changed(this);
  }

  private markEdited(): void {
    this.reset.hidden = !this.edited;
  }

  /** The code as it stands, without an editor, which many cells at once would be too much of. */
  private showStatic(): void {
    const { number } = this.code;
    const label = `Code of cell ${number}. Enter edits it, Shift and Enter run it.`;
    const code = element("code", {});
    code.innerHTML = this.code.code;
    const pre = element(
      "pre",
      { class: "code numbered", tabindex: 0, role: "group", "aria-label": label },
      code,
    );
    // The editor is there before the mouse button is down on it, and sets its cursor itself.
    pre.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) this.edit();
    });
    pre.addEventListener("click", () => this.edit().focus());
    pre.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.edit().focus();
    });
    this.place.replaceChildren(pre);
  }

  private edit(): Editor {
    if (this.editor) return this.editor;
    const { number } = this.code;
    this.place.replaceChildren();
    this.editor = new Editor({
      parent: this.place,
      label: `Code of cell ${number}. Escape, then Tab, leaves the editor.`,
      onRun: () => this.actions.run(this, false),
      onChange: (text) => this.take(text),
    });
    this.editor.open(`cell ${number}`, this.text);
    return this.editor;
  }

  private runByKey(event: KeyboardEvent): void {
    if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
    if (event.target instanceof HTMLButtonElement) return;
    event.preventDefault();
    event.stopPropagation();
    this.actions.run(this, false);
  }
}
