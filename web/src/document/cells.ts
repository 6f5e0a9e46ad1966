/** The cells of a document, which share their names: how they run, and what is kept of that. */

import { element } from "../dom";
import type { PythonSession } from "../python/client";
import type { Job } from "../shell/activity";
import type { Runner } from "../shell/runner";
import type { CellActions, DocumentCell } from "./cell";
import type { DocumentMemory } from "./memory";
import { Recorder, recordOf } from "./record";

interface CellEvents {
  changed(): void;
  /** A cell has run through. */
  ran(cell: DocumentCell): void;
  /** An exercise is solved. */
  passed(exercise: string): void;
  openInEditor(text: string): void;
}

export class CellList {
  readonly cells: DocumentCell[] = [];
  readonly actions: CellActions = {
    run: (cell, check) => {
      if (check || cell.state !== "waiting") void this.runCells([cell], () => check);
    },
    runAbove: (cell) => void this.runCells(this.above(cell)),
    openInEditor: (cell) => {
      const sources = [...this.above(cell), cell].map(({ source }) => source.trimEnd());
      this.events.openInEditor(`${sources.join("\n\n")}\n`);
    },
    changed: () => {
      this.markStale();
      this.events.changed();
    },
    current: (cell) => this.moveTo(cell),
  };
  private current: DocumentCell | null = null;
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
    session.on("restarted", () => {
      for (const cell of this.cells) cell.lose();
      this.markStale();
    });
  }

  get running(): boolean {
    return this.cells.some(({ state }) => state === "running" || state === "waiting");
  }

  /** Put a cell at the end, with what is kept of it; returns whether there was something. */
  add(cell: DocumentCell): boolean {
    this.cells.push(cell);
    const run = this.memory.latest(keyOf(cell));
    if (run) cell.restore(run);
    return run !== undefined;
  }

  /** Run the cell that the reader is at, and go on to the next. */
  run(): void {
    const cell = this.current ?? this.cells.find(({ state }) => state !== "done") ?? this.cells[0];
    if (cell) void this.runCells([cell]).then((done) => done && this.advance(cell));
  }

  /** Run all cells in order in a fresh namespace, until one fails. */
  async runAll(): Promise<void> {
    if (!this.cells.length) return;
    await this.runCells(this.cells, (cell) => cell.code.exercise !== null && cell.edited, true);
  }

  private above(cell: DocumentCell): DocumentCell[] {
    return this.cells.slice(0, this.cells.indexOf(cell));
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
    const name = cells.length === 1 ? `Running cell ${cells[0]!.code.number}` : "Running all cells";
    return runner.ask(name, async (job) => {
      let done = 0;
      try {
        if (afresh) await this.forget();
        for (const cell of cells) {
          if (cells.length > 1) cell.root.scrollIntoView({ block: "nearest" });
          if (!(await this.runCell(job, cell, checks(cell)))) break;
          done += 1;
        }
      } finally {
        for (const cell of cells) cell.leave();
      }
      return done === cells.length;
    });
  }

  private async forget(): Promise<void> {
    await this.runner.restart(this.memory.id);
    for (const cell of this.cells) cell.lose();
  }

  /** Returns whether the cell ran through. */
  private async runCell(job: Job, cell: DocumentCell, check: boolean): Promise<boolean> {
    const { source } = cell;
    const before = cell.run;
    const recorder = new Recorder(cell.output);
    this.moveTo(cell);
    cell.begin();
    const result = await this.runner.runCell(
      job,
      source,
      this.memory.id,
      cell.code.number,
      recorder,
    );
    if (!result) {
      cell.state = "lost";
      return false;
    }
    const { ok, error } = result;
    const run = recordOf(keyOf(cell), source, result, recorder);
    this.memory.add(run);
    cell.finish(run);
    this.count += 1;
    this.order.set(cell, this.count);
    if (before?.source !== source) this.changes.set(cell, this.count);
    this.markStale();
    if (ok) this.events.ran(cell);
    else if (error?.kind === "NameError") this.offerAbove(cell);
    const { exercise } = cell.code;
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
      cell.judge(verdict.passed ? "pass" : "fail", verdict.message);
      if (verdict.passed) this.events.passed(exercise);
    } catch (error) {
      cell.judge("fail", error instanceof Error ? error.message : String(error));
    }
  }

  /** Mark the cells whose output is of another code than theirs, or comes from before a change above. */
  private markStale(): void {
    let edited = false;
    let changed = 0;
    for (const cell of this.cells) {
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
    const button = element(
      "button",
      { class: "button small", type: "button", "data-testid": "offer-above" },
      "Run all above, then this",
    );
    button.addEventListener("click", () => void this.runCells([...this.above(cell), cell]));
    cell.output.add(
      element(
        "p",
        { class: "out-note" },
        "Cells above this one have not run in this session. ",
        button,
      ),
    );
  }

  private moveTo(cell: DocumentCell): void {
    this.current?.root.removeAttribute("data-current");
    this.current = cell;
    cell.root.dataset.current = "true";
  }

  private advance(cell: DocumentCell): void {
    const next = this.cells[this.cells.indexOf(cell) + 1];
    if (!next) return;
    this.moveTo(next);
    next.root.scrollIntoView({ block: "nearest" });
  }
}

function keyOf(cell: DocumentCell): string {
  return String(cell.code.number);
}
