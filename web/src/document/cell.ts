/** A cell of a document: code that becomes an editor when it is touched, and what it printed; or text. */

import { batch, signal, untracked } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { element } from "../dom";
import { highlighted } from "../highlight";
import { Editor } from "../program/editor";
import { type MenuItem, setUpMenu } from "../shell/menu";
import { duration } from "../views/format";
import { once, reactive } from "../views/kit";
import { CellOutput } from "./output";
import { type RunRecord, replay } from "./record";

/** `lost`: it has run, but in a Python that is gone; `waiting`: for what was asked before it. */
export type CellState = "idle" | "waiting" | "running" | "done" | "failed" | "lost";
export type CellKind = "code" | "text";

/** What a cell is made of. */
export interface CellSource {
  /** Names it in its document, and its runs. */
  id: string;
  source: string;
  kind?: CellKind;
  /** The code as highlighted HTML, one element per line. */
  code?: string;
  folded?: boolean;
  /** What checks it, where it is an exercise. */
  exercise?: string | null;
}

export interface CellActions {
  /** Run the cell, and check it if it is an exercise and `check` is asked. */
  run(cell: DocumentCell, check: boolean): void;
  runAbove(cell: DocumentCell): void;
  /** Put the cell and those above into the editor; null where there is none. */
  openInEditor: ((cell: DocumentCell) => void) | null;
  changed(cell: DocumentCell): void;
  current(cell: DocumentCell): void;
}

/** What can be done with the cells of a notebook. */
export interface CellEditing {
  menu(cell: DocumentCell): MenuItem[];
  /** Enter, with Shift, Control or Alt. */
  onRunKey(cell: DocumentCell, event: KeyboardEvent): void;
  onKey(cell: DocumentCell, event: KeyboardEvent): void;
  /** The Markdown of a cell as HTML. */
  rendered(cell: DocumentCell, text: string): string;
}

export class DocumentCell {
  readonly root = element("section", {});
  readonly output = new CellOutput();
  readonly id: string;
  readonly exercise: string | null;
  /** Its place among the cells, from 1. */
  readonly number = signal(1);
  readonly kind;
  readonly isCurrent = signal(false);
  /** Its last run in this session. */
  run: RunRecord | null = null;
  private readonly now = signal<CellState>("idle");
  /** Why its output is not that of its code as things are; null where it is. */
  private readonly reason = signal<string | null>(null);
  private readonly text;
  private readonly editing = signal(false);
  private readonly unfolded = signal(false);
  private readonly verdict = signal<{
    state: "pass" | "fail" | "idle";
    message: string;
    excerpt: string;
  }>({ state: "idle", message: "", excerpt: "" });
  private readonly place = element("div", { class: "cell-code" });
  private readonly menu: HTMLElement | null;
  private editor: Editor | null = null;
  /** Its state before it waited. */
  private before: CellState = "idle";

  constructor(
    private readonly initial: CellSource,
    edited: string | undefined,
    private readonly actions: CellActions,
    private readonly cellEditing: CellEditing | null = null,
  ) {
    this.id = initial.id;
    this.exercise = initial.exercise ?? null;
    this.kind = signal<CellKind>(initial.kind ?? "code");
    this.text = signal(edited ?? initial.source);
    this.menu = cellEditing && this.menuOf(cellEditing);
    this.root.addEventListener("focusin", () => actions.current(this));
    // Before the editor sees it: there, Shift-Enter would break the line.
    this.root.addEventListener("keydown", (event) => this.runByKey(event), { capture: true });
    if (cellEditing)
      this.root.addEventListener("keydown", (event) => cellEditing.onKey(this, event));
    if (this.edited) this.openEditor();
    reactive(this.root, () => {
      this.describe();
      return this.kind.value === "code" ? this.codeTemplate() : this.textTemplate();
    });
  }

  get source(): string {
    return this.text.value;
  }

  get edited(): boolean {
    return this.text.value !== this.initial.source;
  }

  get state(): CellState {
    return this.now.value;
  }

  set state(state: CellState) {
    this.now.value = state;
  }

  set stale(reason: string | null) {
    this.reason.value = reason;
  }

  /** Show the result of a run, and where it went wrong. */
  finish(run: RunRecord): void {
    const { ok, error, modules } = run;
    this.run = run;
    this.output.show(modules);
    this.state = ok ? "done" : "failed";
    if (error && error.kind !== "KeyboardInterrupt") {
      this.unfolded.value = true;
      this.openEditor().underline(error.diagnostics);
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
    if (this.state === "running" || this.state === "waiting") return;
    this.before = this.state;
    this.state = "waiting";
  }

  /** It does not run after all. */
  leave(): void {
    if (this.state === "waiting") this.state = this.before;
  }

  /** What it has defined is gone. */
  lose(): void {
    this.run = null;
    if (this.state === "waiting") {
      if (this.before !== "idle") this.before = "lost";
    } else if (this.state !== "idle") this.state = "lost";
  }

  /** A run begins. */
  begin(): void {
    this.output.clear();
    this.editor?.underline([]);
    this.judge("idle", "");
    this.state = "running";
  }

  judge(state: "pass" | "fail" | "idle", message: string, excerpt = ""): void {
    this.verdict.value = { state, message, excerpt };
  }

  /** Other text for the cell; undo brings the reader's own back. */
  replace(source: string): void {
    const editor = this.openEditor();
    editor.replace(source);
    editor.underline([]);
    this.take(source);
  }

  /** Add text below the reader's own, who goes on writing. */
  addBelow(text: string): void {
    const editor = this.openEditor();
    editor.addBelow(text);
    this.take(editor.text);
  }

  /** Make it code, or text; it keeps what is written in it. */
  become(kind: CellKind): void {
    batch(() => {
      this.kind.value = kind;
      this.editing.value = kind === "code" ? this.editor !== null : this.source === "";
      if (kind === "code" && this.editor) this.editor.open(this.id, this.source);
    });
  }

  /** Let the reader write in it. */
  edit(): void {
    if (this.kind.value === "code") this.openEditor().focus();
    else {
      this.editing.value = true;
      this.root.querySelector("textarea")!.focus();
    }
  }

  /** Choose it as a whole: keys are commands then. Text is shown as it will be read. */
  select(): void {
    if (this.kind.value === "text") this.editing.value = this.source.trim() === "";
    this.root.focus();
    this.root.scrollIntoView({ block: "nearest" });
  }

  private take(text: string): void {
    if (text === this.text.value) return;
    this.text.value = text;
    this.actions.changed(this);
  }

  /** What the element says of itself; style sheets and screen readers know it by that. */
  private describe(): void {
    const { root, cellEditing } = this;
    const [kind, current] = [this.kind.value, this.isCurrent.value];
    root.className = kind === "code" ? "lesson-cell" : "text-cell";
    root.dataset.testid = root.className;
    root.dataset.number = String(this.number.value);
    root.ariaLabel = `${kind === "code" ? "Cell" : "Text cell"} ${this.number.value}`;
    root.dataset.state = this.staleText ? "stale" : this.state;
    if (current) root.dataset.current = "true";
    else delete root.dataset.current;
    if (cellEditing) root.tabIndex = current ? 0 : -1;
  }

  private get staleText(): string | null {
    const state = this.now.value;
    return state === "lost"
      ? "not run in this session"
      : state === "done"
        ? this.reason.value
        : null;
  }

  private codeTemplate(): TemplateResult {
    const { actions, exercise } = this;
    const number = this.number.value;
    const code = this.editing.value ? this.place : this.staticCode();
    const { state, message, excerpt } = this.verdict.value;
    return html`${
      this.initial.folded
        ? html`<details class="cell-fold" ?open=${live(this.unfolded.value)}
            @toggle=${(event: Event) => {
              this.unfolded.value = (event.currentTarget as HTMLDetailsElement).open;
            }}><summary>Show the code</summary>${code}</details>`
        : code
    }
      <div class="cell-bar">
        ${action("Run", `Run cell ${number}`, "cell-run", () => actions.run(this, false), exercise ? "" : "cell-run")}
        ${
          exercise
            ? action(
                "Check",
                `Check cell ${number}`,
                "cell-check",
                () => actions.run(this, true),
                "cell-run",
              )
            : nothing
        }
        <span class="cell-status">${this.statusText()}</span>
        <span class="cell-more">${this.menu ?? this.more(number)}</span>
      </div>
      ${this.output.root}
      ${
        exercise
          ? html`<div class="lesson-check" data-testid="lesson-check" data-state=${state} role="status">${
              state === "idle"
                ? nothing
                : html`<strong>${state === "pass" ? "Solved." : "Not yet."}</strong> ${message}${
                    excerpt ? html`<pre class="lesson-check-excerpt">${excerpt}</pre>` : nothing
                  }`
            }</div>`
          : nothing
      }`;
  }

  private more(number: number): unknown[] {
    const { actions } = this;
    const reset = (): void => this.replace(this.initial.source);
    return [
      this.edited ? action("Reset", `Reset cell ${number}`, "cell-reset", reset) : nothing,
      number > 1
        ? action("Run all above", `Run all above cell ${number}`, "cell-above", () =>
            actions.runAbove(this),
          )
        : nothing,
      actions.openInEditor
        ? action(
            "Open in editor",
            `Open in editor: cell ${number} and those above`,
            "cell-open",
            () => actions.openInEditor!(this),
          )
        : nothing,
    ];
  }

  private statusText(): string {
    const { state } = this;
    if (state === "running" || state === "waiting") return `${state} …`;
    if (this.staleText || !this.run) return this.staleText ?? "";
    const { count, elapsedMs } = this.run;
    const order = this.cellEditing && count ? `[${count}] ` : "";
    return `${order}${state === "done" ? duration(elapsedMs) : ""}`;
  }

  /** The code as it stands, without an editor, which many cells at once would be too much of. */
  private staticCode(): TemplateResult {
    const label = `Code of cell ${this.number.value}. Enter edits it, Shift and Enter run it.`;
    const { source } = this;
    const recorded = source === this.initial.source ? this.initial.code : undefined;
    // The editor is there before the mouse button is down on it, and sets its cursor itself.
    const down = (event: PointerEvent): void => {
      if (event.pointerType === "mouse" && event.button === 0) this.openEditor();
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.edit();
    };
    return html`<div class="cell-code"><pre class="code numbered" tabindex="0" role="group" aria-label=${label}
        @pointerdown=${down} @click=${() => this.edit()} @keydown=${key}>${once(source, () =>
          recorded === undefined ? highlighted(source) : html`<code .innerHTML=${recorded}></code>`,
        )}</pre></div>`;
  }

  private textTemplate(): TemplateResult {
    const number = this.number.value;
    const text = this.text.value;
    const written = html`<textarea class="cell-text" spellcheck="true" placeholder="Markdown"
      aria-label=${`Markdown of text cell ${number}. Escape leaves it.`} rows=${text.split("\n").length + 1}
      .value=${live(text)} @input=${(event: Event) => this.take((event.currentTarget as HTMLTextAreaElement).value)}></textarea>`;
    const shown = html`<div class="lesson-prose" @dblclick=${() => this.edit()}
      .innerHTML=${this.cellEditing!.rendered(this, text)}></div>`;
    const writing = this.editing.value;
    return html`${writing ? written : shown}
      <div class="cell-bar">
        ${
          writing
            ? action("Done", `Done with text cell ${number}`, "cell-shown", () => this.select())
            : action("Edit", `Edit text cell ${number}`, "cell-edit", () => this.edit())
        }
        <span class="cell-more">${this.menu}</span>
      </div>`;
  }

  private menuOf(editing: CellEditing): HTMLElement {
    const button = element("button", {
      class: "button small quiet icon",
      type: "button",
      "aria-label": "What to do with this cell",
      "data-testid": "cell-menu",
    });
    button.textContent = "⋯";
    const box = element("span", {}, button);
    setUpMenu(button, "Cell", () => editing.menu(this));
    return box;
  }

  private openEditor(): Editor {
    this.editing.value = true;
    if (this.editor) return this.editor;
    const number = untracked(() => this.number.value);
    this.editor = new Editor({
      parent: this.place,
      label: `Code of cell ${number}. Escape, then Tab, leaves the editor.`,
      onRun: () => this.actions.run(this, false),
      onChange: (text) => this.take(text),
    });
    this.editor.open(this.id, this.source);
    return this.editor;
  }

  private runByKey(event: KeyboardEvent): void {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    const add = altKey && this.cellEditing !== null;
    if (key !== "Enter" || !(shiftKey || ctrlKey || metaKey || add)) return;
    if (event.target instanceof HTMLButtonElement) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.cellEditing) this.cellEditing.onRunKey(this, event);
    else this.actions.run(this, false);
  }
}

function action(
  label: string,
  name: string,
  testId: string,
  act: () => void,
  kind = "quiet",
): TemplateResult {
  return html`<button class="button small ${kind}" type="button" data-testid=${testId}
    aria-label=${name} @click=${act}>${label}</button>`;
}
