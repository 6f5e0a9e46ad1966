/** The cells of a document, which share their names: how they run, and what is kept of that. */

import { batch, effect, signal } from "@preact/signals-core";
import { html } from "lit-html";
import { message } from "../errors";
import type { PythonSession } from "../python/client";
import type { Job } from "../shell/activity";
import type { Runner } from "../shell/runner";
import type { CellActions, DocumentCell } from "./cell";
import type { DocumentMemory } from "./memory";
import { Recorder, recordOf } from "./record";

interface CellEvents {
  /** Whether cells are counted as they run, since they may be moved; else their places name them. */
  counts?: boolean;
  changed(): void;
  /** A cell has run through. */
  ran?(cell: DocumentCell): void;
  /** An exercise is solved. */
  passed?(exercise: string): void;
  /** Take code into the editor; null where there is none. */
  openInEditor: ((text: string) => void) | null;
}

export class CellList {
  readonly cells = signal<readonly DocumentCell[]>([]);
  readonly actions: CellActions;
  current: DocumentCell | null = null;
  /** When cells ran with another source than before, counted in runs. */
  private readonly changes = new Map<DocumentCell, number>();
  private readonly order = new Map<DocumentCell, number>();
  private count = 0;

  constructor(
    private readonly runner: Runner,
    session: PythonSession,
    readonly memory: DocumentMemory,
    private readonly events: CellEvents,
  ) {
    const { openInEditor } = events;
    this.actions = {
      run: (cell, check) => {
        if (check || cell.state !== "waiting") void this.runCells([cell], () => check);
      },
      runAbove: (cell) => void this.runCells(this.above(cell)),
      openInEditor: openInEditor && ((cell) => openInEditor(this.textUpTo(cell))),
      changed: () => this.change(),
      current: (cell) => this.moveTo(cell),
    };
    session.on("restarted", () => this.lose());
    effect(() => {
      for (const [at, cell] of this.cells.value.entries()) cell.number.value = at + 1;
    });
    void memory.read.then(() => this.recall(this.cells.peek()));
  }

  /** Those that run. */
  get code(): DocumentCell[] {
    return this.cells.value.filter(({ kind }) => kind.value === "code");
  }

  get running(): boolean {
    return this.code.some(({ state }) => state === "running" || state === "waiting");
  }

  /** Other cells, or the same in another order; what is kept of those that are new is shown. */
  set(cells: readonly DocumentCell[]): void {
    const before = this.cells.peek();
    batch(() => {
      this.cells.value = cells;
      this.recall(cells.filter((cell) => !before.includes(cell)));
    });
    this.markStale();
  }

  /** Show what is kept of cells that have not run in this visit. */
  private recall(cells: readonly DocumentCell[]): void {
    for (const cell of cells) {
      const run = cell.state === "idle" ? this.memory.latest(cell.id) : undefined;
      if (run) cell.restore(run);
    }
  }

  /** The document is another one now. */
  change(): void {
    this.markStale();
    this.events.changed();
  }

  /** What cells have defined is gone. */
  lose(): void {
    for (const cell of this.cells.peek()) cell.lose();
    this.count = 0;
    this.order.clear();
    this.changes.clear();
    this.markStale();
  }

  /** Run the cell that the reader is at, and go on to the next. */
  run(): void {
    const { code } = this;
    const cell = this.current ?? code.find(({ state }) => state !== "done") ?? code[0];
    if (cell?.kind.peek() === "text") this.advance(cell);
    else if (cell) void this.runCells([cell]).then((done) => done && this.advance(cell));
  }

  /** Run all cells in order in a fresh namespace, until one fails. */
  async runAll(): Promise<void> {
    const checks = (cell: DocumentCell): boolean => cell.exercise !== null && cell.edited;
    if (this.code.length) await this.runCells(this.code, checks, true);
  }

  above(cell: DocumentCell): DocumentCell[] {
    return this.code.slice(0, this.code.indexOf(cell));
  }

  private textUpTo(cell: DocumentCell): string {
    const sources = [...this.above(cell), cell].map(({ source }) => source.trimEnd());
    return `${sources.join("\n\n")}\n`;
  }

  /**
   * Run cells, and check those that `checks` names, until one fails; `afresh` in a new namespace.
   * Returns whether all ran through.
   */
  private async runCells(
    cells: DocumentCell[],
    checks: (cell: DocumentCell) => boolean = () => false,
    afresh = false,
  ): Promise<boolean> {
    const { runner } = this;
    for (const cell of cells) cell.wait();
    this.moveTo(cells[0]!);
    const name =
      cells.length === 1 ? `Running cell ${cells[0]!.number.peek()}` : "Running all cells";
    return runner.ask(name, async (job) => {
      let done = 0;
      try {
        if (afresh) await this.forget();
        for (const cell of cells) {
          // It may have been taken out while it waited.
          if (!this.code.includes(cell)) continue;
          if (cells.length > 1) {
            this.moveTo(cell);
            cell.root.scrollIntoView({ block: "nearest" });
          }
          if (!(await this.runCell(job, cell, checks(cell)))) break;
          done += 1;
        }
      } finally {
        for (const cell of cells) cell.leave();
      }
      return done === cells.filter((cell) => this.code.includes(cell)).length;
    });
  }

  private async forget(): Promise<void> {
    await this.runner.restart(this.memory.id);
    this.lose();
  }

  /** Returns whether the cell ran through. */
  private async runCell(job: Job, cell: DocumentCell, check: boolean): Promise<boolean> {
    const { source } = cell;
    const before = cell.run;
    const recorder = new Recorder(cell.output);
    const place = cell.number.peek();
    const { counts } = this.events;
    this.count += 1;
    const { count } = this;
    cell.begin();
    const result = await this.runner.runCell(
      job,
      {
        what: `Running cell ${place}`,
        source,
        document: this.memory.id,
        number: counts ? count : place,
      },
      recorder,
    );
    if (!result) {
      cell.state = "lost";
      return false;
    }
    const { ok, error } = result;
    const run = { ...recordOf(cell.id, source, result, recorder), ...(counts ? { count } : {}) };
    this.memory.add(run);
    cell.finish(run);
    this.order.set(cell, count);
    if (before?.source !== source) this.changes.set(cell, count);
    this.markStale();
    if (ok) this.events.ran?.(cell);
    else if (error?.kind === "NameError") this.offerAbove(cell);
    const { exercise } = cell;
    if (check && exercise) {
      if (ok) await this.check(job, cell, exercise);
      else
        cell.judge(
          "fail",
          "The cell ends in an error; it is shown above, and underlined in the code.",
        );
    }
    return ok;
  }

  private async check(job: Job, cell: DocumentCell, exercise: string): Promise<void> {
    try {
      const verdict = await this.runner.check(job, exercise, this.memory.id, cell.output);
      if (!verdict) return;
      cell.judge(verdict.passed ? "pass" : "fail", verdict.message, verdict.excerpt);
      if (verdict.passed) this.events.passed?.(exercise);
    } catch (error) {
      cell.judge("fail", message(error));
    }
  }

  /** Mark the cells whose output is of another code than theirs, or comes from before a change above. */
  private markStale(): void {
    let edited = false;
    let changed = 0;
    for (const cell of this.code) {
      const { run, source } = cell;
      const own = run !== null && run.source !== source;
      const ran = this.order.get(cell) ?? 0;
      const above = edited || changed > ran;
      cell.stale = own ? "edited since it ran" : above ? "a cell above has changed" : null;
      edited ||= own;
      changed = Math.max(changed, this.changes.get(cell) ?? 0);
    }
  }

  /** A name may be missing only because the cell that defines it has not run yet. */
  private offerAbove(cell: DocumentCell): void {
    const missing = this.above(cell).filter(({ state }) => state !== "done");
    if (!missing.length) return;
    const run = (): void => void this.runCells([...this.above(cell), cell]);
    cell.output.add(html`<p class="out-note">Cells above this one have not run in this session.
      <button class="button small" type="button" data-testid="offer-above" @click=${run}
      >Run all above, then this</button></p>`);
  }

  /** The reader is at this cell. */
  moveTo(cell: DocumentCell): void {
    if (this.current) this.current.isCurrent.value = false;
    this.current = cell;
    cell.isCurrent.value = true;
  }

  /** Go on to the cell after this one, if there is one. */
  advance(cell: DocumentCell): DocumentCell | undefined {
    const cells = this.cells.peek();
    const next = cells[cells.indexOf(cell) + 1];
    if (next) {
      this.moveTo(next);
      next.root.scrollIntoView({ block: "nearest" });
    }
    return next;
  }
}
