/** Puts the page together: editor, console, views, and the state that they share. */

import { Stopped, type PythonSession } from "./client";
import { ConsolePanel } from "./console";
import { byId } from "./dom";
import { Editor } from "./editor";
import lesson from "./lessons/stochastic_schedule.py?raw";
import type { RunResult, RuntimeFacts } from "./protocol";
import { setUpSplitter } from "./splitter";
import { recall, remember } from "./storage";
import { setUpTabs } from "./tabs";
import { setUpTheme } from "./theme";
import { duration } from "./views/format";
import { views as viewFactories } from "./views/index";
import type { ViewContext } from "./views/view";

const FILENAME = "lesson.py";
const LEFT_PANES = ["editor", "console"];
const narrow = matchMedia("(max-width: 800px)");

type PageState = "loading" | "ready" | "running" | "error";

export function startPage(session: PythonSession): void {
  const runButton = byId<HTMLButtonElement>("run");
  const stopButton = byId<HTMLButtonElement>("stop");
  const progress = byId("progress");
  const status = document.querySelector<HTMLElement>(".status")!;
  const statusText = byId("status-text");

  /** What runs now, and how to stop it. */
  let activity: { what: string; stop: () => void } | null = null;
  /** Activities that have ended, for whoever has to tell one end from the next. */
  let ended = 0;
  /** How the last run ended, for the status while nothing runs. */
  let outcome: { text: string; failed: boolean } | null = null;

  setUpTheme(byId("theme"));
  document.querySelector("#run kbd")!.textContent = isMac() ? "⌘↵" : "Ctrl ↵";

  let saving = 0;
  const editor = new Editor({
    parent: byId("editor"),
    text: recall("program") ?? lesson,
    onRun: () => void run(),
    onChange: (text) => {
      clearTimeout(saving);
      saving = window.setTimeout(() => remember("program", text === lesson ? null : text), 300);
    },
  });
  const goTo = (line: number, column: number): void => {
    show("editor");
    editor.goTo(line, column);
  };
  const consolePanel = new ConsolePanel(byId("console"), goTo);

  const toast = setUpToast();
  const context: ViewContext = {
    session,
    editor,
    during,
    isBusy: () => activity !== null,
    show: (pane) => show(pane),
    toast,
  };
  const views = viewFactories.map((create) => create(context));
  byId("views").append(...views.map(({ panel }) => panel));

  const tabs = setUpTabs(
    byId("panes"),
    [
      { id: "editor", title: "Program", panel: byId("pane-editor"), kind: "narrow-only" },
      { id: "console", title: "Console", panel: byId("pane-console"), kind: "narrow-only" },
      ...views,
    ],
    (id) => {
      document.body.dataset.pane = id;
      for (const view of views) view.panel.hidden = view.id !== id;
      views.find((view) => view.id === id)?.onShow?.();
    },
  );

  /** Bring a pane to the front. On a wide page editor and console are always there. */
  function show(pane: string): void {
    if (narrow.matches || !LEFT_PANES.includes(pane)) tabs.select(pane);
  }
  const arrange = (): void => {
    const pane = document.body.dataset.pane ?? "editor";
    const left = LEFT_PANES.includes(pane);
    tabs.select(narrow.matches ? (left ? pane : "editor") : left ? views[0]!.id : pane);
  };
  narrow.addEventListener("change", arrange);
  arrange();

  const workbench = byId("workbench");
  setUpSplitter(byId("split-columns"), workbench, {
    property: "split-columns",
    direction: "column",
    label: "Width of the program pane",
    initial: 50,
  });
  setUpSplitter(byId("split-rows"), workbench, {
    property: "split-rows",
    direction: "row",
    label: "Height of the program pane",
    initial: 66,
  });

  function refresh(): void {
    const [state, text] = describeState();
    status.dataset.state = state;
    status.dataset.ended = String(ended);
    if (statusText.textContent !== text) statusText.textContent = text;
    status.dataset.start = session.runtime ? (session.runtime.restored ? "restored" : "plain") : "";
    status.title = session.runtime ? describeRuntime(session.runtime) : "";
    runButton.disabled = activity !== null || session.state === "failed";
    stopButton.disabled = activity === null;
    const loading = session.state === "loading";
    progress.style.setProperty("--done", String(loading ? session.progress[1] : 1));
    progress.classList.toggle("busy", activity !== null && !loading);
    progress.classList.toggle("idle", activity === null && !loading);
  }

  function describeState(): [PageState, string] {
    if (session.state === "failed") return ["error", `Python did not load: ${session.failure}`];
    if (session.state === "loading") {
      const [stage] = session.progress;
      return ["loading", activity ? `${stage} …; then the program runs` : `${stage} …`];
    }
    if (activity) return ["running", activity.what];
    if (outcome) return [outcome.failed ? "error" : "ready", outcome.text];
    return ["ready", "Ready"];
  }

  async function during<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T> {
    if (activity) throw new Error("something runs already");
    activity = { what, stop };
    outcome = null;
    refresh();
    for (const view of views) view.onActivity?.();
    try {
      return await work();
    } finally {
      activity = null;
      ended += 1;
      refresh();
      for (const view of views) view.onActivity?.();
    }
  }

  async function run(): Promise<void> {
    if (activity || session.state === "failed") return;
    if (narrow.matches) tabs.select("console");
    consolePanel.clear();
    editor.underline([]);
    await during("Running", () => void session.stop(), async () => {
      try {
        finish(await session.call("cell.execute", editor.text, FILENAME));
      } catch (error) {
        if (error instanceof Stopped) return;
        const text = error instanceof Error ? error.message : String(error);
        consolePanel.note(text, "warning");
        outcome = { text: "The run failed", failed: true };
      }
    });
  }

  function finish(result: RunResult): void {
    const { ok, error, elapsedMs } = result;
    if (ok) {
      consolePanel.note(`Finished in ${duration(elapsedMs)}`, "done");
      outcome = { text: `Finished in ${duration(elapsedMs)}`, failed: false };
    } else if (error?.kind === "KeyboardInterrupt") {
      consolePanel.note(`Stopped after ${duration(elapsedMs)}`, "warning");
      outcome = { text: "Stopped", failed: false };
    } else if (error) {
      consolePanel.error(error);
      editor.underline(error.diagnostics);
      const line = error.diagnostics[0]?.line;
      outcome = { text: line ? `${error.kind} in line ${line}` : error.kind, failed: true };
    }
    for (const view of views) view.onResult?.(result);
  }

  runButton.addEventListener("click", () => void run());
  stopButton.addEventListener("click", () => activity?.stop());
  byId("clear").addEventListener("click", () => consolePanel.clear());
  byId("reset").addEventListener("click", () => {
    if (editor.text === lesson) {
      toast("This is the lesson’s program");
      return;
    }
    editor.replace(lesson);
    editor.underline([]);
    toast(`The lesson’s program is back; ${isMac() ? "⌘Z" : "Ctrl Z"} in the editor brings yours back`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
    event.preventDefault();
    void run();
  });

  session.on("output", (chunks) => consolePanel.append(chunks));
  session.on("progress", refresh);
  session.on("kept", (done) => {
    status.dataset.kept = String(done);
  });
  session.on("state", (state) => {
    if (state === "failed") consolePanel.note(`Python did not load: ${session.failure}`, "warning");
    refresh();
  });
  session.on("restarted", (reason) => {
    consolePanel.note(reason, "warning");
    for (const view of views) view.onRestart?.();
    refresh();
  });
  refresh();
}

/** A short message at the foot of the page that goes away by itself. */
function setUpToast(): (message: string) => void {
  const box = byId("toast");
  let timer = 0;
  return (message) => {
    box.textContent = message;
    box.hidden = false;
    clearTimeout(timer);
    timer = window.setTimeout(() => (box.hidden = true), 5000);
  };
}

function describeRuntime({ mlcweb, python, pyodide, isolated, restored, milliseconds }: RuntimeFacts): string {
  const clock = isolated ? "fine clock" : "coarse clock: the page is not isolated";
  const way = restored ? "restored" : "loaded";
  return `mlcweb ${mlcweb}, Python ${python}, Pyodide ${pyodide}; ${way} in ${duration(milliseconds)}; ${clock}`;
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.platform);
}
