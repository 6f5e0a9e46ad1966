/** Puts the page together: documents, views, and what they share. */

import { byId } from "./dom";
import { LessonDocument } from "./lessons/document";
import { ProgramDocument } from "./program/program";
import type { PythonSession } from "./python/client";
import type { ShownModule } from "./python/wire";
import { hashParts, setHash } from "./share/address";
import { setUpSharing } from "./share/dialog";
import { BadLink, decode, type SharedState } from "./share/state";
import { Activity } from "./shell/activity";
import type { PageDocument } from "./shell/document";
import { DocumentViews } from "./shell/document_views";
import { COMMAND } from "./shell/keys";
import { watchLeftovers } from "./shell/leftovers";
import { setUpMenu } from "./shell/menu";
import { Panes } from "./shell/panes";
import { Runner } from "./shell/runner";
import { setUpSplitter } from "./shell/splitter";
import { setUpStatus } from "./shell/status";
import { toast } from "./shell/toast";
import { setUpTheme } from "./theme";
import { makeViews } from "./views/index";
import type { View } from "./views/view";

export function startPage(session: PythonSession): void {
  const activity = new Activity(session);
  const views: View[] = [];
  const show = (pane: string): void => panes.show(pane);
  const shown = new DocumentViews(views, session, (view) => panes.bringBack(view));
  const runner = new Runner(session, activity, (result, owner) => shown.take(result, owner));

  runner.onClose = (document) => shown.close(document);

  setUpTheme(byId("theme"));
  const program = new ProgramDocument(runner, session, show, (module) => showModule(module));
  views.push(...makeViews(activity, { session, editor: program.editor, show }));
  byId("views").append(...views.map(({ panel }) => panel));
  const showModule = (module: ShownModule): void => {
    shown.showModules([module]);
    show("tensorir");
  };
  const lesson = new LessonDocument({
    runner,
    session,
    show,
    showModule,
    openProgram: (name, text) => {
      show("editor");
      program.add(name, text);
    },
  });
  const panes = new Panes([program, lesson], views);
  setUpMenu(byId("file-menu"), "Files", () => program.menu());
  setUpSharing(byId("share"), () => sharedState(program, views));
  program.onLeaveLink = () => {
    if (hashParts(location.hash).has("code")) setHash("");
  };
  program.onTurn = () => panes.onOpen?.(panes.document);
  panes.onView = (view) => shown.opened(view);
  let turned = Promise.resolve();
  panes.onOpen = (document) => {
    turned = document.memory().then((memory) => {
      if (panes.document === document) shown.turnTo(memory);
    });
    showAddress(document);
  };
  const showAddress = ({ id }: PageDocument): void => {
    byId("to-lessons").ariaCurrent = id === "lesson" ? "page" : null;
    byId("to-program").ariaCurrent = id === "program" ? "page" : null;
    if (id !== "program") return;
    document.title = TITLE;
    if (hashParts(location.hash).has("lesson")) setHash("");
  };
  const route = async (): Promise<void> => {
    const asked = hashParts(location.hash);
    const code = asked.get("code");
    if (asked.has("lesson")) {
      await lesson.open(asked.get("lesson") ?? "");
      panes.openDocument("lesson");
      return;
    }
    panes.openDocument("program");
    if (!code) return;
    try {
      const [state] = await Promise.all([decode(code), turned]);
      program.openLink(code, state);
      if (state.view) show(state.view);
      for (const view of views) view.restore?.(state.views?.[view.id]);
    } catch (error) {
      if (!(error instanceof BadLink)) throw error;
      toast(error.message);
    }
  };
  addEventListener("hashchange", () => void route());
  void route();

  setUpStatus(session, activity, () => panes.document);
  watchLeftovers(session, activity);
  setUpSplitter(byId("split-columns"), byId("workbench"), {
    property: "split-columns",
    direction: "column",
    label: "Width of the left half",
    initial: 50,
  });

  document.querySelector("#run kbd")!.textContent = `${COMMAND}↵`;
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented)
      return;
    event.preventDefault();
    panes.document.run();
  });
}

const TITLE = document.title;

/** What the page shows now, for a link. */
function sharedState(program: ProgramDocument, views: View[]): SharedState {
  const states = views
    .map((view) => [view.id, view.state?.() ?? null] as const)
    .filter(([, state]) => state !== null);
  const view = document.body.dataset.side === "views" ? document.body.dataset.pane : undefined;
  return {
    version: 1,
    files: program.files.files,
    open: program.files.open,
    ...(view ? { view } : {}),
    ...(states.length ? { views: Object.fromEntries(states) } : {}),
  };
}
