/** A cell of a lesson: code that becomes an editor when it is touched, and what it printed. */

import { element } from "../dom";
import { Editor } from "../program/editor";
import type { RunResult } from "../python/protocol";
import { duration } from "../views/format";
import type { LessonCode } from "./lesson";
import { CellOutput } from "./output";

/** `stale`: it has run, but in a Python that is gone; `waiting`: for what was asked before it. */
export type CellState = "idle" | "waiting" | "running" | "done" | "failed" | "stale";

const STALE = "not run in this session";

export interface CellActions {
  /** Run the cell, and check it if it is an exercise and `check` is asked. */
  run(cell: LessonCell, check: boolean): void;
  runAbove(cell: LessonCell): void;
  openInEditor(cell: LessonCell): void;
  changed(cell: LessonCell): void;
  current(cell: LessonCell): void;
}

export class LessonCell {
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
  private before: [CellState, string] = ["idle", ""];

  constructor(
    readonly code: LessonCode,
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
    this.root.dataset.state = state;
    if (state === "running" || state === "waiting") this.status.textContent = `${state} …`;
    else if (state === "stale") this.status.textContent = STALE;
    else if (state !== "done") this.status.textContent = "";
  }

  /** Show the result of a run, and where it went wrong. */
  finish(result: RunResult): void {
    this.output.show(result.modules);
    this.state = result.ok ? "done" : "failed";
    this.status.textContent = result.ok ? duration(result.elapsedMs) : "";
    if (result.error && result.error.kind !== "KeyboardInterrupt") {
      this.root.querySelector("details")?.setAttribute("open", "");
      this.edit().underline(result.error.diagnostics);
    }
  }

  /** A run was asked for, and begins when it is its turn. */
  wait(): void {
    if (this.now === "running" || this.now === "waiting") return;
    this.before = [this.now, this.status.textContent];
    this.state = "waiting";
  }

  /** It does not run after all. */
  leave(): void {
    if (this.now !== "waiting") return;
    [this.state, this.status.textContent] = this.before;
  }

  /** What it has defined is gone. */
  lose(): void {
    if (this.now === "waiting") {
      if (this.before[0] !== "idle") this.before = ["stale", STALE];
    } else if (this.now !== "idle") this.state = "stale";
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
