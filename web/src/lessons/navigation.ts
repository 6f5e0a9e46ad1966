/** The list of lessons with what is done of each, and the way to the one before and after. */

import { html, nothing, render, type TemplateResult } from "lit-html";
import { LESSONS } from "./catalogue";
import type { LessonEntry } from "./lesson";
import { progressOf, shareDone } from "./progress";

export function addressOf(id: string): string {
  return `#lesson=${id}`;
}

/** Bar above a lesson. `id` is the lesson that is open; null for the list itself. */
export function lessonBar(id: string | null, actions: unknown): TemplateResult {
  const at = LESSONS.findIndex((entry) => entry.id === id);
  const open = LESSONS[at];
  const step = (entry: LessonEntry | undefined, sign: string, what: string): TemplateResult =>
    entry
      ? html`<a class="button quiet icon" href=${addressOf(entry.id)}
          aria-label=${`${what} lesson: ${entry.title}`}>${sign}</a>`
      : html`<span class="button quiet icon" aria-hidden="true"></span>`;
  return html`<nav class="lesson-nav" data-testid="lesson-nav" aria-label="Lessons">${
    open
      ? [
          step(LESSONS[at - 1], "‹", "Previous"),
          lessonMenu(open, at + 1),
          actions,
          step(LESSONS[at + 1], "›", "Next"),
        ]
      : html`<span class="lesson-menu">Lessons</span>`
  }</nav>`;
}

/** The list as a menu; what is done of each is looked up when it opens. */
function lessonMenu({ id, title }: LessonEntry, number: number): TemplateResult {
  const menu = (event: Event): HTMLDetailsElement => event.currentTarget as HTMLDetailsElement;
  const onToggle = (event: Event): void => {
    const list = menu(event);
    if (list.open) render(lessonList(id, false), list.querySelector<HTMLElement>("div")!);
  };
  const onClick = (event: Event): void => {
    if ((event.target as HTMLElement).closest("a")) menu(event).open = false;
  };
  const onKey = (event: KeyboardEvent): void => {
    const list = menu(event);
    if (event.key !== "Escape" || !list.open) return;
    list.open = false;
    list.querySelector("summary")!.focus();
  };
  const onLeave = (event: FocusEvent): void => {
    const { relatedTarget } = event;
    if (relatedTarget && !menu(event).contains(relatedTarget as Node)) menu(event).open = false;
  };
  return html`<details class="lesson-menu" @toggle=${onToggle} @click=${onClick} @keydown=${onKey}
    @focusout=${onLeave}><summary>${number}. ${title}</summary><div></div></details>`;
}

/** All lessons, each with what is done of it, and with what it is about if `detailed`. */
export function lessonList(current: string | null, detailed: boolean): TemplateResult {
  return html`<ol class=${detailed ? "lesson-list detailed" : "lesson-list"}>${LESSONS.map(
    (entry, index) => html`<li><a href=${addressOf(entry.id)}
      aria-current=${entry.id === current ? "page" : nothing}>
      <span class="lesson-number">${index + 1}</span>
      <span class="lesson-title">${entry.title}</span>
      ${doneMark(entry)}
      ${detailed ? html`<span class="lesson-summary">Chapter ${entry.chapter}. ${entry.summary}</span>` : nothing}
    </a></li>`,
  )}${detailed ? nothing : html`<li><a href="#lesson"><span></span>What each is about</a></li>`}</ol>`;
}

/** A disc that fills as the lesson gets done, and the same in words. */
function doneMark({ id, cells, exercises }: LessonEntry): TemplateResult {
  const progress = progressOf(id);
  const share = shareDone(progress, cells, exercises.length);
  const words = progress.passed.length
    ? `${progress.passed.length} of ${exercises.length} exercises solved`
    : progress.ran.length
      ? "Begun"
      : "Not started";
  return html`<span class="lesson-done" data-begun=${progress.ran.length ? "true" : nothing}
    title=${words} style=${`--done: ${share.toFixed(2)}`}><span class="visually-hidden">${words}</span></span>`;
}

/** Links to the lessons before and after, for a lesson's end. */
export function lessonFooter(id: string): TemplateResult {
  const at = LESSONS.findIndex((entry) => entry.id === id);
  const link = (entry: LessonEntry | undefined, what: string): unknown =>
    entry ? html`<a href=${addressOf(entry.id)}><span>${what}</span>${entry.title}</a>` : nothing;
  return html`<nav class="lesson-footer" aria-label="More lessons">
    ${link(LESSONS[at - 1], "Previous")}${link(LESSONS[at + 1], "Next")}
  </nav>`;
}
