/** Shows a lesson in a panel, and runs its cells, which share their names. */

import { element } from "../dom";
import type { PythonSession } from "../python/client";
import type { ShownModule } from "../python/protocol";
import type { Job } from "../shell/activity";
import type { Runner } from "../shell/runner";
import { LESSONS, type LoadedLesson, loadLesson } from "./catalogue";
import { type CellActions, LessonCell } from "./cell";
import type { LessonCode, LessonPart, Recording } from "./lesson";
import "./lesson.css";
import { lessonBar, lessonFooter, lessonList } from "./navigation";
import { keepProgress, type Progress, progressOf } from "./progress";

/** What a lesson needs of the page around it. */
export interface LessonHost {
  runner: Runner;
  session: PythonSession;
  /** Bring a view to the front; null where there are no views. */
  show: ((view: string) => void) | null;
  /** Show a module in the TensorIR view. */
  showModule: ((module: ShownModule) => void) | null;
  /** Put a program into the editor; null where there is none. */
  openProgram: ((name: string, text: string) => void) | null;
}

/** Milliseconds after the last key until the reader's code is stored. */
const SAVING_DELAY = 300;

export class LessonReader {
  /** The lesson that is shown; null for the list. */
  id: string | null = null;
  private cells: LessonCell[] = [];
  private current: LessonCell | null = null;
  private progress: Progress = { ran: [], passed: [], edits: {} };
  private saving = 0;
  private opening = 0;

  constructor(
    private readonly panel: HTMLElement,
    private readonly host: LessonHost,
  ) {
    host.session.on("restarted", () => {
      for (const cell of this.cells) cell.lose();
    });
    panel.addEventListener("click", (event) => this.follow(event));
    addEventListener("pagehide", () => this.save());
  }

  /** Show a lesson, or the list of all if there is none of this name. */
  async open(id: string): Promise<void> {
    const turn = ++this.opening;
    if (id === this.id && this.cells.length) return;
    this.save();
    const loaded = await loadLesson(id);
    if (turn !== this.opening) return;
    this.id = loaded ? id : null;
    this.panel.dataset.lesson = this.id ?? "";
    this.cells = [];
    this.current = null;
    if (loaded) this.show(loaded);
    else this.showList();
    this.panel.scrollTop = 0;
  }

  get running(): boolean {
    return this.cells.some(({ state }) => state === "running" || state === "waiting");
  }

  /** Run the cell that the reader is at, and go on to the next. */
  run(): void {
    const cell = this.current ?? this.cells.find(({ state }) => state !== "done") ?? this.cells[0];
    if (cell) void this.runCells([cell]).then((done) => done && this.advance(cell));
  }

  /** Run all cells in order in a fresh namespace, until one fails. */
  async runAll(): Promise<void> {
    await this.runCells(this.cells, (cell) => cell.code.exercise !== null && cell.edited, true);
  }

  private showList(): void {
    this.panel.replaceChildren(
      lessonBar(null, []),
      element(
        "div",
        { class: "lesson-text" },
        element("h2", {}, "Lessons"),
        element(
          "p",
          {},
          "Machine learning compilation from the first tensor program to fused models, in interactive lessons. What you change and solve is stored in this browser.",
        ),
        lessonList(null, true),
      ),
    );
  }

  private show({ lesson, recording }: LoadedLesson): void {
    this.progress = progressOf(lesson.id);
    const at = LESSONS.findIndex(({ id }) => id === lesson.id);
    const body = element(
      "article",
      { class: "lesson-text", "aria-label": lesson.title },
      element("p", { class: "lesson-chapter" }, `Lesson ${at + 1} · chapter ${lesson.chapter}`),
      element("h2", {}, lesson.title),
      element("p", { class: "lesson-lead" }, lesson.summary),
    );
    let exercise: LessonCell | null = null;
    for (const part of lesson.parts) {
      if (part.kind === "cell") {
        const cell = this.cell(part, recording);
        if (part.exercise) exercise = cell;
        body.append(cell.root);
      } else body.append(this.passage(part, exercise));
    }
    const runAll = element(
      "button",
      { class: "button small", type: "button", "data-testid": "lesson-run-all" },
      "Run all",
    );
    runAll.addEventListener("click", () => void this.runAll());
    this.panel.replaceChildren(lessonBar(lesson.id, [runAll]), body, lessonFooter(lesson.id));
  }

  private passage(part: Exclude<LessonPart, LessonCode>, exercise: LessonCell | null): HTMLElement {
    if (part.kind === "text") {
      const text = element("div", { class: "lesson-prose" });
      text.innerHTML = part.html;
      return text;
    }
    if (part.kind === "hint") {
      const hint = element("div", { class: "lesson-prose" });
      hint.innerHTML = part.html;
      return element("details", { class: "lesson-hint" }, element("summary", {}, "Hint"), hint);
    }
    const code = element("code", {});
    code.innerHTML = part.code;
    const label = part.kind === "static" ? "Code that does not run in the page" : "Solution";
    const pre = element(
      "pre",
      { class: "code", tabindex: 0, role: "group", "aria-label": label },
      code,
    );
    if (part.kind === "static") {
      return element(
        "div",
        { class: "lesson-static" },
        pre,
        element("p", { class: "recorded-note" }, "to be read; it does not run in the page"),
      );
    }
    const take = element("button", { class: "button small", type: "button" }, "Use this solution");
    take.addEventListener("click", () => exercise?.replace(part.source));
    return element(
      "details",
      { class: "lesson-hint", "data-testid": "lesson-solution" },
      element("summary", {}, "Solution"),
      pre,
      take,
    );
  }

  private cell(code: LessonCode, recording: Recording | null): LessonCell {
    const actions: CellActions = {
      run: (cell, check) => {
        if (check || cell.state !== "waiting") void this.runCells([cell], () => check);
      },
      runAbove: (cell) => void this.runCells(this.above(cell)),
      openInEditor: (cell) => this.host.openProgram?.(`${this.id}.py`, this.program(cell)),
      changed: () => this.saveSoon(),
      current: (cell) => this.moveTo(cell),
    };
    const cell = new LessonCell(
      code,
      this.progress.edits[code.number],
      actions,
      this.host.openProgram !== null,
    );
    if (this.host.showModule)
      cell.output.onOpen = (module) => this.host.showModule!({ id: "lesson", ...module });
    const recorded = recording?.cells[code.number];
    if (recorded && !cell.edited) {
      const when = `recorded on ${recording!.date}, ${recording!.browser}; Run replaces it`;
      cell.output.showRecorded(recorded.text, recorded.modules, when);
    }
    if (code.exercise && this.progress.passed.includes(code.exercise))
      cell.judge("pass", "You have solved this before.");
    this.cells.push(cell);
    return cell;
  }

  private above(cell: LessonCell): LessonCell[] {
    return this.cells.slice(0, this.cells.indexOf(cell));
  }

  /** This cell with those above it, as one program. */
  private program(cell: LessonCell): string {
    return `${[...this.above(cell), cell].map(({ source }) => source.trimEnd()).join("\n\n")}\n`;
  }

  /**
   * Run cells, and check those that `checks` names, until one fails; `afresh` in a new namespace.
   * Returns whether all ran through.
   */
  private async runCells(
    cells: LessonCell[],
    checks: (cell: LessonCell) => boolean = () => false,
    afresh = false,
  ): Promise<boolean> {
    const lesson = this.id;
    if (lesson === null) return false;
    const { runner } = this.host;
    for (const cell of cells) cell.wait();
    this.moveTo(cells[0]!);
    const name = cells.length === 1 ? `Running cell ${cells[0]!.code.number}` : "Running all cells";
    return runner.ask(name, async (job) => {
      let done = 0;
      try {
        if (afresh) await runner.restart(lesson);
        for (const cell of cells) {
          if (cells.length > 1) cell.root.scrollIntoView({ block: "nearest" });
          if (!(await this.runCell(job, cell, lesson, checks(cell)))) break;
          done += 1;
        }
      } finally {
        for (const cell of cells) cell.leave();
      }
      return done === cells.length;
    });
  }

  /** Returns whether the cell ran through. */
  private async runCell(
    job: Job,
    cell: LessonCell,
    lesson: string,
    check: boolean,
  ): Promise<boolean> {
    const { runner } = this.host;
    this.moveTo(cell);
    cell.begin();
    const result = await runner.runCell(job, cell.source, lesson, cell.code.number, cell.output);
    if (!result) {
      cell.state = "stale";
      return false;
    }
    cell.finish(result);
    if (result.ok)
      this.keep(lesson, (progress) => (progress.ran = withItem(progress.ran, cell.code.number)));
    else if (result.error?.kind === "NameError") this.offerAbove(cell);
    const { exercise } = cell.code;
    if (check && exercise) {
      if (result.ok) await this.check(job, cell, exercise, lesson);
      else
        cell.judge(
          "fail",
          "The cell ends in an error; it is shown above, and underlined in the code.",
        );
    }
    return result.ok;
  }

  private async check(job: Job, cell: LessonCell, exercise: string, lesson: string): Promise<void> {
    try {
      const verdict = await this.host.runner.check(job, exercise, lesson, cell.output);
      if (!verdict) return;
      cell.judge(verdict.passed ? "pass" : "fail", verdict.message);
      if (verdict.passed)
        this.keep(lesson, (progress) => (progress.passed = withItem(progress.passed, exercise)));
    } catch (error) {
      cell.judge("fail", error instanceof Error ? error.message : String(error));
    }
  }

  /** A name may be missing only because the cell that defines it has not run yet. */
  private offerAbove(cell: LessonCell): void {
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

  private moveTo(cell: LessonCell): void {
    if (!this.cells.includes(cell)) return;
    this.current?.root.removeAttribute("data-current");
    this.current = cell;
    cell.root.dataset.current = "true";
  }

  private advance(cell: LessonCell): void {
    const next = this.cells[this.cells.indexOf(cell) + 1];
    if (!next) return;
    this.moveTo(next);
    next.root.scrollIntoView({ block: "nearest" });
  }

  /** Links to views, which the text of a lesson holds. */
  private follow(event: MouseEvent): void {
    const link = (event.target as HTMLElement).closest<HTMLAnchorElement>('a[href^="view:"]');
    if (!link) return;
    event.preventDefault();
    this.host.show?.(link.getAttribute("href")!.slice("view:".length));
  }

  private keep(lesson: string, change: (progress: Progress) => void): void {
    const progress = lesson === this.id ? this.progress : progressOf(lesson);
    change(progress);
    keepProgress(lesson, progress);
  }

  private saveSoon(): void {
    clearTimeout(this.saving);
    this.saving = window.setTimeout(() => this.save(), SAVING_DELAY);
  }

  private save(): void {
    clearTimeout(this.saving);
    if (this.id === null || !this.cells.length) return;
    const edited = this.cells.filter((cell) => cell.edited);
    const edits = Object.fromEntries(edited.map((cell) => [cell.code.number, cell.source]));
    if (JSON.stringify(edits) === JSON.stringify(this.progress.edits)) return;
    this.keep(this.id, (progress) => (progress.edits = edits));
  }
}

function withItem<T>(items: T[], item: T): T[] {
  return items.includes(item) ? items : [...items, item];
}
