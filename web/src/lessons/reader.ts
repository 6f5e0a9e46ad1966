/** Shows a lesson in a panel, and runs its cells, which share their names. */

import { html, nothing, render, type TemplateResult } from "lit-html";
import { keyed } from "lit-html/directives/keyed.js";
import { DocumentCell } from "../document/cell";
import { CellList } from "../document/cells";
import { historyButton } from "../document/history";
import { DocumentMemory } from "../document/memory";
import type { PythonSession } from "../python/client";
import type { ShownModule } from "../python/wire";
import type { Runner } from "../shell/runner";
import { toast } from "../shell/toast";
import { NO_ROOM, Saving } from "../storage";
import { LESSONS, type LoadedLesson, loadLesson } from "./catalogue";
import type { LessonCode, LessonPart } from "./lesson";
import "./lesson.css";
import { lessonBar, lessonFooter, lessonList } from "./navigation";
import { LessonProgress, type Progress } from "./progress";

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

/** Lessons whose names Python keeps. */
const MAX_OPEN = 4;

/** The list of all lessons, and that `missing`, which a link or a page asks for, is none of them. */
const listPage = (missing: string): TemplateResult => html`${lessonBar(null, nothing)}
  <div class="lesson-text">
    <h2>Lessons</h2>
    ${missing && html`<p role="alert">There is no lesson “${missing}”.</p>`}
    <p>Machine learning compilation from the first tensor program to fused models, in interactive
      lessons. What you change and solve, and what your cells print, is stored in this browser.</p>
    ${lessonList(null, true)}
  </div>`;

/** A lesson that was opened in this visit: its cells live on while another is read. */
interface OpenLesson {
  cells: CellList;
  progress: LessonProgress;
  template(): TemplateResult;
}

export class LessonReader {
  /** The lesson that is shown; null for the list. */
  id: string | null = null;
  private readonly lessons = new Map<string, OpenLesson>();
  private readonly saving = new Saving(() => this.save());
  /** Whether the browser has kept what was stored last. */
  private keeps = true;
  private opening = 0;

  constructor(
    private readonly panel: HTMLElement,
    private readonly host: LessonHost,
  ) {
    panel.addEventListener("click", (event) => this.follow(event));
    panel.addEventListener("scroll", () => this.keepScroll());
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
    this.saving.now();
    const lesson = this.lessons.get(id) ?? (await this.load(id));
    if (turn !== this.opening) return;
    this.panel.dataset.lesson = lesson ? id : "";
    this.id = lesson ? id : null;
    if (lesson) {
      this.lessons.delete(id);
      this.lessons.set(id, lesson);
      this.closeOthers();
    }
    render(keyed(this.id, lesson ? lesson.template() : listPage(id)), this.panel);
    this.scrollBack();
  }

  /** Let go of what the lessons have defined that were read the longest time ago. */
  private closeOthers(): void {
    const others = [...this.lessons].filter(([id, { cells }]) => id !== this.id && !cells.running);
    for (const [id, { cells }] of others.slice(0, Math.max(0, others.length + 1 - MAX_OPEN)))
      if (this.host.runner.close(id)) cells.lose();
  }

  /** Run the cell that the reader is at, and go on to the next. */
  run(): void {
    this.now?.cells.run();
  }

  private get now(): OpenLesson | undefined {
    return this.id === null ? undefined : this.lessons.get(this.id);
  }

  private async load(id: string): Promise<OpenLesson | null> {
    const [loaded, memory] = await Promise.all([loadLesson(id), DocumentMemory.open(id)]);
    return loaded && this.make(loaded, memory);
  }

  private make({ lesson, recording }: LoadedLesson, memory: DocumentMemory): OpenLesson {
    const { id } = lesson;
    const progress = new LessonProgress(id);
    const { runner, session, openProgram } = this.host;
    const cells = new CellList(runner, session, memory, {
      changed: () => this.saving.soon(),
      ran: ({ number }) => {
        progress.now.ran = withItem(progress.now.ran, number.peek());
        this.store(cells, progress);
      },
      passed: (exercise) => {
        progress.now.passed = withItem(progress.now.passed, exercise);
        this.store(cells, progress);
      },
      openInEditor: openProgram && ((text) => openProgram(`${id}.py`, text)),
    });
    const cellOf = new Map(
      lesson.parts.flatMap((part) =>
        part.kind === "cell" ? [[part, this.cell(part, cells, progress.now)]] : [],
      ),
    );
    cells.set([...cellOf.values()]);
    for (const cell of cellOf.values()) {
      const recorded = recording?.cells[cell.id];
      if (cell.state !== "idle" || !recorded || cell.edited) continue;
      const when = `recorded on ${recording!.date}, ${recording!.browser}; Run replaces it`;
      cell.output.showRecorded(recorded.text, recorded.modules, when);
    }
    const runs = historyButton(async () => memory);
    let exercise: DocumentCell | undefined;
    const shown = lesson.parts.map((part) => {
      if (part.kind !== "cell") return passage(part, exercise);
      const cell = cellOf.get(part)!;
      if (part.exercise) exercise = cell;
      return cell.root;
    });
    const at = LESSONS.findIndex((entry) => entry.id === id);
    const text = html`<article class="lesson-text" aria-label=${lesson.title}>
      <p class="lesson-chapter">Lesson ${at + 1} · chapter ${lesson.chapter}</p>
      <h2>${lesson.title}</h2>
      <p class="lesson-lead">${lesson.summary}</p>
      ${shown}
    </article>`;
    const template = (): TemplateResult =>
      html`${lessonBar(
        id,
        html`${runs}<button class="button small" type="button" data-testid="lesson-run-all"
        @click=${() => cells.runAll()}>Run all</button>`,
      )}${text}${lessonFooter(id)}`;
    return { cells, progress, template };
  }

  private cell(code: LessonCode, { actions }: CellList, { edits, passed }: Progress): DocumentCell {
    const cell = new DocumentCell(
      { ...code, id: String(code.number), kind: "code" },
      edits[code.number],
      actions,
    );
    const { showModule } = this.host;
    if (showModule) cell.output.onOpen = (module) => showModule({ id: "lesson", ...module });
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

  private save(): void {
    for (const { cells, progress } of this.lessons.values()) {
      if (JSON.stringify(editsOf(cells.code)) !== JSON.stringify(progress.now.edits))
        this.store(cells, progress);
    }
  }

  /** Store the progress, and show what another tab has made of cells. */
  private store({ code }: CellList, progress: LessonProgress): void {
    progress.now.edits = editsOf(code);
    const { kept, theirs, rivals } = progress.store();
    for (const cell of code) {
      const [text, rival] = [theirs[cell.id], rivals[cell.id]];
      if (text !== undefined) cell.replace(text);
      if (rival === undefined) continue;
      cell.addBelow(rival.replace(/^/gm, "# "));
      toast(
        `Another tab has changed cell ${cell.number.peek()}, too. Its text is kept below yours, as a comment`,
      );
    }
    if (!kept && this.keeps) toast(NO_ROOM);
    this.keeps = kept;
  }
}

/** A part of a lesson that is no cell; a solution is one of `exercise`. */
function passage(
  part: Exclude<LessonPart, LessonCode>,
  exercise: DocumentCell | undefined,
): TemplateResult {
  if (part.kind === "text") return html`<div class="lesson-prose" .innerHTML=${part.html}></div>`;
  if (part.kind === "hint")
    return html`<details class="lesson-hint"><summary>Hint</summary>
      <div class="lesson-prose" .innerHTML=${part.html}></div></details>`;
  const code = (label: string): TemplateResult => html`<pre class="code" tabindex="0" role="group"
    aria-label=${label}><code .innerHTML=${part.code}></code></pre>`;
  if (part.kind === "static")
    return html`<div class="lesson-static">${code("Code that does not run in the page")}
      <p class="recorded-note">to be read; it does not run in the page</p></div>`;
  return html`<details class="lesson-hint" data-testid="lesson-solution">
    <summary>Solution</summary>${code("Solution")}
    <button class="button small" type="button"
      @click=${() => exercise?.replace(part.source)}>Use this solution</button>
  </details>`;
}

/** What the reader has made of cells. */
function editsOf(cells: DocumentCell[]): Progress["edits"] {
  const edited = cells.filter((cell) => cell.edited);
  return Object.fromEntries(edited.map((cell) => [cell.id, cell.source]));
}

function withItem<T>(items: T[], item: T): T[] {
  return items.includes(item) ? items : [...items, item];
}
