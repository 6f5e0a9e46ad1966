/** The header: its line about what goes on, its progress bar, and its buttons Run and Stop. */

import { effect } from "@preact/signals-core";
import { byId } from "../dom";
import type { PythonSession } from "../python/client";
import type { RuntimeFacts } from "../python/messages";
import { duration } from "../views/format";
import type { Activity } from "./activity";
import { showStartNotice } from "./start_notice";

type PageState = "loading" | "ready" | "running" | "error";

/** What the Run button runs; `running` says whether it does so already, or waits to. */
interface Runnable {
  readonly running: boolean;
  run(): void;
}

export function setUpStatus(
  session: PythonSession,
  activity: Activity,
  runnable: () => Runnable,
): void {
  const status = byId("status");
  const text = byId("status-text");
  const progress = byId("progress");
  const runButton = setUpButton("run", () => runnable().run());
  const stopButton = setUpButton("stop", () => activity.stop());

  /** What comes behind a ready Python concerns only who waits for it. */
  const toTell = (): string | null =>
    session.state !== "ready" || activity.shown ? session.complaint : null;

  const describe = (): [PageState, string] => {
    const { shown } = activity;
    const outcome = activity.outcome.value;
    const complaint = toTell();
    if (complaint !== null) return [session.state === "ready" ? "running" : "error", complaint];
    if (session.state === "loading") {
      const [stage] = session.progress;
      return ["loading", shown ? `${stage} …; then the program runs` : `${stage} …`];
    }
    if (shown) {
      const waiting = activity.waiting ? `; ${activity.waiting} more to come` : "";
      return ["running", (session.fetching ? `${session.fetching} …` : shown.what.value) + waiting];
    }
    if (outcome) return [outcome.failed ? "error" : "ready", outcome.text];
    return ["ready", "Ready"];
  };

  const retry = (): void => session.restart("Python was started again.");

  const refresh = (): void => {
    const [state, sentence] = describe();
    status.dataset.state = state;
    showStartNotice(toTell(), retry);
    status.dataset.ended = String(activity.ended.value);
    if (text.textContent !== sentence) text.textContent = sentence;
    status.dataset.start = session.runtime ? (session.runtime.restored ? "restored" : "plain") : "";
    status.title = session.runtime ? describeRuntime(session.runtime) : "";
    runButton.ariaDisabled = String(runnable().running || session.state === "failed");
    stopButton.ariaDisabled = String(activity.shown === null);
    const loading = session.state === "loading";
    progress.style.setProperty("--done", String(loading ? session.progress[1] : 1));
    progress.classList.toggle("busy", activity.shown !== null && !loading);
    progress.classList.toggle("idle", activity.shown === null && !loading);
  };

  effect(refresh);
  for (const event of ["state", "progress", "fetching", "stalled", "restarted"] as const)
    session.on(event, refresh);
  session.on("stored", (done) => {
    status.dataset.snapshot = done ? "stored" : "failed";
  });
}

/** A button that is pressed in vain while it is `ariaDisabled`, and keeps the focus then. */
function setUpButton(id: string, press: () => void): HTMLElement {
  const button = byId(id);
  button.addEventListener("click", () => {
    if (button.ariaDisabled !== "true") press();
  });
  return button;
}

function describeRuntime({
  mlcweb,
  python,
  pyodide,
  isolated,
  restored,
  milliseconds,
}: RuntimeFacts): string {
  const clock = isolated ? "fine clock" : "coarse clock: the page is not isolated";
  const way = restored ? "restored" : "loaded";
  return `mlcweb ${mlcweb}, Python ${python}, Pyodide ${pyodide}; ${way} in ${duration(milliseconds)}; ${clock}`;
}
