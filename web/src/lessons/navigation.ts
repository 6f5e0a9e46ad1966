/** The list of lessons with what is done of each, and the way to the one before and after. */

import { element } from "../dom";
import { LESSONS } from "./catalogue";
import type { LessonEntry } from "./lesson";
import { progressOf, shareDone } from "./progress";

export function addressOf(id: string): string {
  return `#lesson=${id}`;
}

/** Bar above a lesson. `id` is the lesson that is open; null for the list itself. */
export function lessonBar(id: string | null, actions: HTMLElement[]): HTMLElement {
  const at = LESSONS.findIndex((entry) => entry.id === id);
  const open = LESSONS[at];
  if (!open) return navigation(element("span", { class: "lesson-menu" }, "Lessons"));
  const summary = element("summary", {}, `${at + 1}. ${open.title}`);
  const list = element("details", { class: "lesson-menu" }, summary);
  list.addEventListener("toggle", () => {
    if (list.open) list.replaceChildren(summary, lessonList(id, false));
  });
  list.addEventListener("click", (event) => {
    if ((event.target as HTMLElement).closest("a")) list.open = false;
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !list.open) return;
    list.open = false;
    summary.focus();
  });
  list.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !list.contains(relatedTarget as Node)) list.open = false;
  });
  const step = (entry: LessonEntry | undefined, sign: string, what: string): HTMLElement =>
    entry
      ? element(
          "a",
          {
            class: "button quiet icon",
            href: addressOf(entry.id),
            "aria-label": `${what} lesson: ${entry.title}`,
          },
          sign,
        )
      : element("span", { class: "button quiet icon", "aria-hidden": "true" });
  return navigation(
    step(LESSONS[at - 1], "‹", "Previous"),
    list,
    ...actions,
    step(LESSONS[at + 1], "›", "Next"),
  );
}

function navigation(...parts: HTMLElement[]): HTMLElement {
  return element(
    "nav",
    { class: "lesson-nav", "data-testid": "lesson-nav", "aria-label": "Lessons" },
    ...parts,
  );
}

/** All lessons, each with what is done of it, and with what it is about if `detailed`. */
export function lessonList(current: string | null, detailed: boolean): HTMLElement {
  const items = LESSONS.map((entry, index) => {
    const { id, title, summary, chapter } = entry;
    return element(
      "li",
      {},
      element(
        "a",
        { href: addressOf(id), "aria-current": id === current ? "page" : null },
        element("span", { class: "lesson-number" }, String(index + 1)),
        element("span", { class: "lesson-title" }, title),
        doneMark(entry),
        detailed
          ? element("span", { class: "lesson-summary" }, `Chapter ${chapter}. ${summary}`)
          : null,
      ),
    );
  });
  if (!detailed)
    items.push(
      element("li", {}, element("a", { href: "#lesson" }, element("span"), "What each is about")),
    );
  return element("ol", { class: detailed ? "lesson-list detailed" : "lesson-list" }, ...items);
}

/** A disc that fills as the lesson gets done, and the same in words. */
function doneMark({ id, cells, exercises }: LessonEntry): HTMLElement {
  const progress = progressOf(id);
  const share = shareDone(progress, cells, exercises.length);
  const words = progress.passed.length
    ? `${progress.passed.length} of ${exercises.length} exercises solved`
    : progress.ran.length
      ? "begun"
      : "Not started";
  const begun = progress.ran.length > 0 ? "true" : null;
  const mark = element("span", { class: "lesson-done", "data-begun": begun, title: words });
  mark.append(element("span", { class: "visually-hidden" }, words));
  mark.style.setProperty("--done", share.toFixed(2));
  return mark;
}

/** Links to the lessons before and after, for a lesson's end. */
export function lessonFooter(id: string): HTMLElement {
  const at = LESSONS.findIndex((entry) => entry.id === id);
  const link = (entry: LessonEntry | undefined, what: string): HTMLElement | null =>
    entry
      ? element("a", { href: addressOf(entry.id) }, element("span", {}, what), entry.title)
      : null;
  return element(
    "nav",
    { class: "lesson-footer", "aria-label": "More lessons" },
    link(LESSONS[at - 1], "Previous"),
    link(LESSONS[at + 1], "Next"),
  );
}
