/** What a frame shows: a program or a lesson, and the views that the page around asks for. */

import { byId, element } from "../dom";
import type { Editor } from "../program/editor";
import "../program/program.css";
import type { PythonSession } from "../python/client";
import { encode, type SharedState } from "../share/state";
import { Activity } from "../shell/activity";
import { watchLeftovers } from "../shell/leftovers";
import { Runner } from "../shell/runner";
import { setUpStatus } from "../shell/status";
import { setUpTabs } from "../shell/tabs";
import { toast } from "../shell/toast";
import { imposeTheme } from "../theme";
import { showResult } from "../views/following";
import { makeViews } from "../views/index";
import type { View } from "../views/view";
import { cellContent } from "./cell";
import { lessonContent } from "./lesson";
import { type FrameOptions, type FromFrame, MARK } from "./messages";

/** What fills a frame. */
export interface FrameContent {
  root: HTMLElement;
  /** Where views put code; null where there is no program. */
  editor: Editor | null;
  /** Whether its code runs, or waits to. */
  readonly running: boolean;
  run(): void;
  /** What the link to the playground opens: a program, or else the hash of its address. */
  shared(): SharedState | string;
}

/** What a content needs of its frame. */
export interface FrameHost {
  session: PythonSession;
  runner: Runner;
  /** Whether there is a view of this name, and then it comes to the front. */
  show(view: string): void;
  views: readonly View[];
}

/** Fill the frame; returns what applies another theme. `code` is a program in the frame's address. */
export async function startFrame(
  session: PythonSession,
  options: FrameOptions,
  code: string | null,
  say: (message: FromFrame) => void,
): Promise<(theme: string | null) => void> {
  imposeTheme(options.theme);
  document.body.classList.toggle("has-fixed-height", options.fixedHeight);
  const activity = new Activity(session);
  const views: View[] = [];
  const runner = new Runner(session, activity, (result) => {
    showResult(views, session, result);
    say({ mark: MARK, type: "ran", ok: result.ok });
  });
  const tabs = element("div", { class: "panes", role: "tablist", "aria-label": "Views" });
  let select: ((view: string) => void) | null = null;
  const host: FrameHost = {
    session,
    runner,
    views,
    show: (name) => {
      if (views.some(({ id }) => id === name)) select?.(name);
    },
  };
  const content =
    options.lesson === null
      ? await cellContent(host, options.cell, code)
      : await lessonContent(host, options.lesson);
  byId("embed").append(content.root);

  const { editor } = content;
  if (editor && options.panes.length) {
    const all = makeViews(activity, { session, editor, show: host.show });
    views.push(...all.filter(({ id }) => options.panes.includes(id)));
  }
  if (views.length) {
    const list = setUpTabs(tabs, views, (id) => {
      for (const view of views) view.panel.hidden = view.id !== id;
      views.find((view) => view.id === id)?.onShow?.();
    });
    byId("embed").append(
      element(
        "section",
        { class: "embed-views", "aria-label": "Views" },
        tabs,
        ...views.map(({ panel }) => panel),
      ),
    );
    select = (name) => list.select(name);
    select(views[0]!.id);
  }

  setUpStatus(session, activity, () => content);
  watchLeftovers(session, activity);
  setUpLink(byId<HTMLAnchorElement>("playground"), () => content.shared());
  if (!options.fixedHeight) tellHeight(say);
  if (options.run && options.lesson === null) content.run();
  else if (options.cell) toast("Press Run to start the program");
  return imposeTheme;
}

/** The link leads to the playground with what the frame shows when the link is followed. */
function setUpLink(link: HTMLAnchorElement, shared: () => SharedState | string): void {
  link.title = "Open this in the playground";
  const renew = (): void => {
    const state = shared();
    if (typeof state === "string") link.href = `./#${state}`;
    else void encode(state).then((code) => (link.href = `./#code=${code}`));
  };
  for (const event of ["pointerenter", "focus", "touchstart"] as const)
    link.addEventListener(event, renew, { passive: true });
  renew();
}

/** Tell the page around how high the content is, whenever that changes. */
function tellHeight(say: (message: FromFrame) => void): void {
  let sent = 0;
  const observer = new ResizeObserver(() => {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    if (height === sent) return;
    sent = height;
    say({ mark: MARK, type: "resize", height });
  });
  observer.observe(document.body);
}
