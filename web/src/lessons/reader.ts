/** Shows a lesson in a panel, and runs its cells, which share their names. */

import { DocumentCell } from "../document/cell";
import { CellList } from "../document/cells";
import { historyButton } from "../document/history";
import { DocumentMemory } from "../document/memory";
import { element } from "../dom";
import type { PythonSession } from "../python/client";
import type { ShownModule } from "../python/wire";
import type { Runner } from "../shell/runner";
import { LESSONS, type LoadedLesson, loadLesson } from "./catalogue";
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

/** A lesson that was opened in this visit: its cells live on while another is read. */
interface OpenLesson {
  cells: CellList;
  progress: Progress;
  nodes: HTMLElement[];
}

export class LessonReader {
  /** The lesson that is shown; null for the list. */
  id: string | null = null;
  private readonly lessons = new Map<string, OpenLesson>();
  private saving = 0;
  private opening = 0;

  constructor(
    private readonly panel: HTMLElement,
    private readonly host: LessonHost,
  ) {
    panel.addEventListener("click", (event) => this.follow(event));
    panel.addEventListener("scroll", () => this.keepScroll());
    addEventListener("pagehide", () => this.save());
  }

  /** What is kept of the lesson that is shown. */
  get memory(): DocumentMemory | null {
    return this.now?.cells.memory ?? null;
  }

  get running(): boolean {
    return this.now?.cells.running ?? false;
  }

  /** Show a lesson, or the list of all if there is none of this name. */
  async open(id: string): Promise<void> {
    const turn = ++this.opening;
    if (id === this.id) return;
    this.save();
    const lesson = this.lessons.get(id) ?? (await this.load(id));
    if (turn !== this.opening) return;
    this.panel.dataset.lesson = lesson ? id : "";
    if (lesson) {
      this.lessons.set(id, lesson);
      this.panel.replaceChildren(...lesson.nodes);
    } else this.showList();
    this.id = lesson ? id : null;
    this.scrollBack();
  }

  /** Run the cell that the reader is at, and go on to the next. */
  run(): void {
    this.now?.cells.run();
  }

  private get now(): OpenLesson | undefined {
    return this.id === null ? undefined : this.lessons.get(this.id);
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
          "Machine learning compilation from the first tensor program to fused models, in interactive lessons. What you change and solve, and what your cells print, is stored in this browser.",
        ),
        lessonList(null, true),
      ),
    );
  }

  private async load(id: string): Promise<OpenLesson | null> {
    const [loaded, memory] = await Promise.all([loadLesson(id), DocumentMemory.open(id)]);
    return loaded && this.make(loaded, memory);
  }

  private make({ lesson, recording }: LoadedLesson, memory: DocumentMemory): OpenLesson {
    const { id } = lesson;
    const progress = progressOf(id);
    const keep = (change: () => void): void => {
      change();
      keepProgress(id, progress);
    };
    const { runner, session } = this.host;
    const cells = new CellList(runner, session, memory, {
      changed: () => this.saveSoon(),
      ran: ({ code }) => keep(() => (progress.ran = withItem(progress.ran, code.number))),
      passed: (exercise) => keep(() => (progress.passed = withItem(progress.passed, exercise))),
      openInEditor: (text) => this.host.openProgram?.(`${id}.py`, text),
    });
    const at = LESSONS.findIndex((entry) => entry.id === id);
    const body = element(
      "article",
      { class: "lesson-text", "aria-label": lesson.title },
      element("p", { class: "lesson-chapter" }, `Lesson ${at + 1} · chapter ${lesson.chapter}`),
      element("h2", {}, lesson.title),
      element("p", { class: "lesson-lead" }, lesson.summary),
    );
    let exercise: DocumentCell | null = null;
    for (const part of lesson.parts) {
      if (part.kind === "cell") {
        const cell = this.cell(part, cells, progress, recording);
        if (part.exercise) exercise = cell;
        body.append(cell.root);
      } else body.append(this.passage(part, exercise));
    }
    const runAll = element(
      "button",
      { class: "button small", type: "button", "data-testid": "lesson-run-all" },
      "Run all",
    );
    runAll.addEventListener("click", () => void cells.runAll());
    return {
      cells,
      progress,
      nodes: [lessonBar(id, [historyButton(async () => memory), runAll]), body, lessonFooter(id)],
    };
  }

  private passage(
    part: Exclude<LessonPart, LessonCode>,
    exercise: DocumentCell | null,
  ): HTMLElement {
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

  private cell(
    code: LessonCode,
    cells: CellList,
    { edits, passed }: Progress,
    recording: Recording | null,
  ): DocumentCell {
    const cell = new DocumentCell(
      code,
      edits[code.number],
      cells.actions,
      this.host.openProgram !== null,
    );
    if (this.host.showModule)
      cell.output.onOpen = (module) => this.host.showModule!({ id: "lesson", ...module });
    const recorded = recording?.cells[code.number];
    if (!cells.add(cell) && recorded && !cell.edited) {
      const when = `recorded on ${recording!.date}, ${recording!.browser}; Run replaces it`;
      cell.output.showRecorded(recorded.text, recorded.modules, when);
    }
    if (code.exercise && passed.includes(code.exercise))
      cell.judge("pass", "You have solved this before.");
    return cell;
  }

  /** Links to views, which the text of a lesson holds. */
  private follow(event: MouseEvent): void {
    const link = (event.target as HTMLElement).closest<HTMLAnchorElement>('a[href^="view:"]');
    if (!link) return;
    event.preventDefault();
    this.host.show?.(link.getAttribute("href")!.slice("view:".length));
  }

  /** Go where the reader has left the lesson; does nothing while it is hidden. */
  scrollBack(): void {
    this.panel.scrollTop = this.memory?.scroll ?? 0;
  }

  private keepScroll(): void {
    const { memory, panel } = this;
    if (!memory || !panel.clientHeight || memory.scroll === panel.scrollTop) return;
    memory.scroll = panel.scrollTop;
    memory.saveSoon();
  }

  private saveSoon(): void {
    clearTimeout(this.saving);
    this.saving = window.setTimeout(() => this.save(), SAVING_DELAY);
  }

  private save(): void {
    clearTimeout(this.saving);
    for (const [id, { cells, progress }] of this.lessons) {
      const edited = cells.cells.filter((cell) => cell.edited);
      const edits = Object.fromEntries(edited.map((cell) => [cell.code.number, cell.source]));
      if (JSON.stringify(edits) === JSON.stringify(progress.edits)) continue;
      progress.edits = edits;
      keepProgress(id, progress);
    }
  }
}

function withItem<T>(items: T[], item: T): T[] {
  return items.includes(item) ? items : [...items, item];
}
