/**
 * Trace: the schedule instructions of the program, the module and the loop nest after each of them,
 * decisions to change, times of steps, and another trace beside it.
 */

import { element } from "../../dom";
import { Stopped } from "../../python/client";
import type { Changes, DerivedTrace, ShownTrace, StepOutcome } from "../../python/protocol";
import { setUpMenu } from "../../shell/menu";
import { timing } from "../format";
import { chooser, emptyNote, viewPanel } from "../parts";
import type { View, ViewContext } from "../view";
import { type Side, TraceComparer } from "./compare";
import { Decisions } from "./decisions";
import { exportItems } from "./exports";
import { onOpenTrace } from "./open";
import { lookUp, readState, type TraceReference, type TraceState } from "./state";
import { StepList } from "./steps";
import { comparedWith, StepTimer } from "./timing";

/** What is compared with where nothing is. */
const NONE = "none";
/** The shown trace with the decisions that it was recorded with. */
const RECORDED = "recorded";

interface Shown {
  trace: ShownTrace;
  changes: Changes;
  derived: DerivedTrace;
}

export function traceView(context: ViewContext): View {
  const { session, during, isBusy, toast } = context;
  const panel = viewPanel("trace", "Trace");
  panel.classList.add("view-filled");
  const nothing = emptyNote(
    "No trace yet",
    "Run a program that schedules something. Each schedule instruction becomes a step; the module after it is shown beside.",
  );
  panel.append(nothing);

  const timer = new StepTimer(session);
  const steps = new StepList({
    ids: {
      step: "trace-step",
      module: "trace-module",
      nest: "trace-loopnest",
      filter: { find: "trace-find", changesOnly: "trace-changes-only" },
    },
  });
  const comparer = new TraceComparer();
  const decisions = new Decisions({
    onChoose: (step, decision) => void change({ ...shown?.changes, [step]: decision }, step),
    onReset: () => void change({}, null),
    onVisit: (step) => steps.select(step),
    mayAsk: () => shown !== null && !isBusy(),
    refusal: (step, decision) =>
      session.call("trace_view.refusal", shown!.trace.id, shown!.changes, step, decision),
  });
  const choosers = element("div", { class: "trace-choosers" });
  const timeAll = element(
    "button",
    { class: "button", type: "button", "data-testid": "trace-time" },
    "Time every step",
  );
  const stop = element(
    "button",
    { class: "button", type: "button", "data-testid": "trace-time-stop", hidden: true },
    "Stop timing",
  );
  const exporter = element(
    "button",
    { class: "button", type: "button", "data-testid": "trace-export" },
    "Export",
  );
  const bar = element("progress", {
    class: "trace-progress",
    max: 1,
    value: 0,
    "aria-label": "Steps timed",
  });
  const said = element("p", { class: "trace-said", role: "status", "data-testid": "trace-said" });
  const head = element(
    "div",
    { class: "trace-head" },
    choosers,
    timeAll,
    stop,
    exporter,
    said,
    bar,
  );
  setUpMenu(exporter, "Export the trace", () =>
    shown ? exportItems(session, shown, times(), toast) : [],
  );

  let traces: ShownTrace[] = [];
  let shown: Shown | null = null;
  let beside: string = NONE;
  /** Traces of a new run wait here until the view is in sight. */
  let stale = false;
  /** What a link asked for, until a program has run. */
  let wanted: TraceState | null = null;
  let request = 0;
  /** What Python derived, and the times measured, by trace and changes. */
  const derivations = new Map<string, Promise<DerivedTrace>>();
  const measured = new Map<string, Map<number, StepOutcome>>();
  /** Steps of traces that are none of the run, as links hold them. */
  const foreign = new Map<string, unknown[]>();

  const derive = (id: string, changes: Changes): Promise<DerivedTrace> => {
    const key = keyOf(id, changes);
    const known = derivations.get(key);
    if (known) return known;
    const asked = session.call("trace_view.derive", id, changes);
    derivations.set(key, asked);
    asked.catch(() => derivations.delete(key));
    return asked;
  };
  const times = (of = shown): Map<number, StepOutcome> => {
    if (!of) return new Map();
    const key = keyOf(of.trace.id, of.changes);
    const found = measured.get(key) ?? new Map<number, StepOutcome>();
    measured.set(key, found);
    return found;
  };

  async function show(trace: ShownTrace, changes: Changes = {}, step?: number): Promise<void> {
    const mine = ++request;
    panel.setAttribute("aria-busy", "true");
    try {
      const derived = await derive(trace.id, changes);
      if (mine !== request) return;
      shown = { trace, changes, derived };
      if (beside === trace.id || (beside === RECORDED && !isChanged())) beside = NONE;
      draw(step);
      decisions.say("");
      if (derived.failure) decisions.say(failureText(derived), "bad");
    } catch (error) {
      if (mine !== request || error instanceof Stopped) return;
      shown = null;
      drawChoosers();
      place(head, emptyNote("The trace cannot be replayed", message(error)));
      update();
    } finally {
      if (mine === request) panel.removeAttribute("aria-busy");
    }
  }

  function draw(step?: number): void {
    if (!shown) return;
    drawChoosers();
    decisions.show(shown.derived.controls);
    steps.show({ steps: shown.derived.instructions }, shown.derived.steps, step);
    steps.setTimes(times());
    if (beside === NONE) place(head, decisions.root, steps.root);
    else void compare();
    update();
  }

  function drawChoosers(): void {
    const id = shown?.trace.id ?? traces.at(-1)!.id;
    const others = [
      { id: NONE, title: "nothing" },
      ...(isChanged() ? [{ id: RECORDED, title: "this one as recorded" }] : []),
      ...traces.filter((trace) => trace.id !== id),
    ];
    const second = chooser("Beside it", others, beside, (next) => {
      beside = next;
      draw(steps.selected);
      second.querySelector("select")?.focus();
    });
    second.querySelector("select")!.dataset.testid = "trace-second";
    choosers.replaceChildren(
      chooser(
        "Schedule",
        traces,
        id,
        (next) => void show(traces.find((trace) => trace.id === next)!),
      ),
      second,
    );
  }

  /** Put these into the panel, without taking out what is there already. */
  function place(...parts: HTMLElement[]): void {
    for (const child of [...panel.children])
      if (!parts.includes(child as HTMLElement)) child.remove();
    for (const [at, part] of parts.entries()) {
      if (panel.children[at] !== part) panel.insertBefore(part, panel.children[at] ?? null);
    }
  }

  async function compare(): Promise<void> {
    const first = shown;
    if (!first) return;
    const other = beside === RECORDED ? first.trace : traces.find((trace) => trace.id === beside);
    if (!other) return;
    const chosen = beside;
    try {
      const [second, comparison] = await Promise.all([
        derive(other.id, {}),
        session.call("trace_compare.compare", first.trace.id, first.changes, other.id, {}),
      ]);
      if (shown !== first || beside !== chosen) return;
      const title = other === first.trace ? "as recorded" : other.title;
      comparer.show(
        side(isChanged() ? `${first.trace.title}, changed` : first.trace.title, first.derived),
        side(title, second),
        comparison,
      );
      place(head, decisions.root, comparer.root);
    } catch (error) {
      if (shown !== first || error instanceof Stopped) return;
      beside = NONE;
      draw(steps.selected);
      said.textContent = `The traces cannot be compared: ${message(error)}`;
    }
  }

  /** Derive the program with other decisions, check what it computes, and time it. */
  async function change(changes: Changes, step: number | null): Promise<void> {
    const before = shown;
    if (!before) return;
    const mine = ++request;
    decisions.say("Deriving the program anew …", "busy");
    try {
      const derived = await derive(before.trace.id, changes);
      if (mine !== request) return;
      if (derived.failure) {
        decisions.show(before.derived.controls);
        decisions.say(`Not possible: ${failureText(derived)}`, "bad");
        return;
      }
      shown = { trace: before.trace, changes, derived };
      if (beside === RECORDED && !isChanged()) beside = NONE;
      const at = steps.selected === before.derived.steps.length - 1 ? undefined : steps.selected;
      draw(at);
      decisions.say(
        step === null ? "The decisions are those recorded." : "The program is derived anew.",
      );
      await check(shown);
    } catch (error) {
      if (mine !== request) return;
      decisions.show(before.derived.controls);
      decisions.say(error instanceof Stopped ? "Stopped." : message(error), "bad");
    }
  }

  /** Check and time the program in the end, and say how it does. */
  async function check(now: Shown): Promise<void> {
    const last = now.derived.steps.length - 1;
    if (!times(now).has(last)) {
      if (isBusy()) {
        decisions.say(
          "The program is derived anew. It was not timed, because something else runs.",
        );
        return;
      }
      decisions.say("Derived anew; checking what it computes, and timing it …", "busy");
      await measure([last], now);
    }
    if (shown !== now) return;
    const outcome = times(now).get(last);
    const base = times(now).get(0);
    if (outcome?.seconds === undefined) return;
    if (outcome.seconds === null) {
      decisions.say(`Derived anew, but ${outcome.reason}`, "bad");
      return;
    }
    const recorded = measured.get(keyOf(now.trace.id, {}))?.get(last)?.seconds ?? null;
    const parts = [
      `Computes the same as before any step; ${timing(outcome.seconds)}`,
      base?.seconds
        ? comparedWith(outcome.seconds, base.seconds, "the program before any step")
        : "",
      recorded !== null && isChanged()
        ? comparedWith(outcome.seconds, recorded, "as recorded")
        : "",
    ];
    decisions.say(`${parts.filter(Boolean).join(", ")}.`, "good");
  }

  /** Measure the program after these steps; what is known already is not measured again. */
  async function measure(which: number[], now: Shown): Promise<void> {
    const found = times(now);
    const missing = which.filter((step) => !found.has(step) && step > 0);
    let done = 0;
    bar.max = missing.length + 1;
    bar.value = 0;
    swap(timeAll, stop);
    bar.classList.add("is-running");
    const tell = (step: number, outcome: StepOutcome | null): void => {
      if (outcome && outcome.state !== "stopped") found.set(step, outcome);
      if (outcome) done += 1;
      if (shown !== now) return;
      bar.value = done;
      said.textContent = `Timing step ${step}: ${done} of ${missing.length + 1} done`;
      steps.setTimes(found, outcome ? null : step);
    };
    try {
      await during(
        `Timing ${now.trace.title}`,
        () => timer.stop(),
        () => timer.run(now.trace.id, now.changes, missing, tell),
      );
      said.textContent = timer.stopped
        ? `Stopped: ${done} of ${missing.length + 1} steps timed`
        : "";
    } catch (error) {
      said.textContent = timer.stopped || error instanceof Stopped ? "Stopped." : message(error);
    } finally {
      swap(stop, timeAll);
      bar.classList.remove("is-running");
      if (shown === now) steps.setTimes(found);
    }
  }

  async function timeEveryStep(): Promise<void> {
    const now = shown;
    if (!now || isBusy()) return;
    // Steps that leave the program as it was have its time.
    await measure(
      now.derived.steps.filter(({ changed }) => changed).map(({ index }) => index),
      now,
    );
    const found = [...times(now).values()];
    const failed = found.filter(({ seconds }) => seconds === null).length;
    if (!timer.stopped && found.length > 1) {
      said.textContent = `${found.length - failed} programs timed${failed ? `, ${failed} without a time` : ""}`;
    }
  }

  function update(): void {
    timeAll.disabled = isBusy() || !shown;
  }

  function isChanged(): boolean {
    return shown?.derived.controls.some(({ changed }) => changed) ?? false;
  }

  function load(): void {
    stale = false;
    const state = wanted;
    wanted = null;
    if (state) void follow(state);
    else if (traces.length) void show(traces.at(-1)!);
  }

  /** Show what a link asked for. */
  async function follow({ shown: first, step, second }: TraceState): Promise<void> {
    const trace = await refer(first);
    if (!trace) {
      // The program is another one by now.
      if (traces.length) await show(traces.at(-1)!);
      return;
    }
    const other = second && (await refer(second));
    beside = other ? (other === trace ? RECORDED : other.id) : NONE;
    await show(trace, first.changes, step);
  }

  async function refer(reference: TraceReference): Promise<ShownTrace | undefined> {
    if (!reference.steps) return lookUp(traces, reference);
    try {
      const trace = await session.call("trace_export.load", reference.title, reference.steps);
      foreign.set(trace.id, reference.steps);
      traces = [...traces, trace];
      return trace;
    } catch (error) {
      toast(`The link's trace does not fit: ${message(error)}`);
      return undefined;
    }
  }

  function reference(trace: ShownTrace, changes: Changes): TraceReference {
    const own = foreign.get(trace.id);
    return {
      index: traces.indexOf(trace),
      title: trace.title,
      changes,
      ...(own ? { steps: own } : {}),
    };
  }

  function traceState(): TraceState | null {
    if (!shown) return wanted;
    const state: TraceState = {
      shown: reference(shown.trace, shown.changes),
      step: steps.selected,
    };
    const other = beside === RECORDED ? shown.trace : traces.find((trace) => trace.id === beside);
    if (other) state.second = reference(other, {});
    return state;
  }

  /** Show what `traceState` told, as soon as the program has run. */
  function showTrace(state: unknown): void {
    wanted = readState(state);
  }

  onOpenTrace((trace) => {
    if (!traces.some(({ id }) => id === trace.id)) traces = [...traces, trace];
    stale = false;
    context.show("trace");
    void show(trace);
    session
      .call("trace_export.steps_json", trace.id, {})
      .then((own) => foreign.set(trace.id, own))
      .catch(() => undefined);
  });
  timeAll.addEventListener("click", () => void timeEveryStep());
  stop.addEventListener("click", () => timer.stop());

  return {
    id: "trace",
    title: "Trace",
    panel,
    onResult(result) {
      if (!result.traces.length) {
        if (result.ok) {
          request += 1;
          shown = null;
          wanted = null;
          traces = [];
          panel.replaceChildren(nothing);
        }
        return;
      }
      traces = result.traces;
      shown = null;
      beside = NONE;
      said.textContent = "";
      derivations.clear();
      measured.clear();
      foreign.clear();
      stale = true;
      if (!panel.hidden) load();
    },
    onActivity: update,
    onShow() {
      if (stale) load();
    },
    state: traceState,
    restore: showTrace,
  };
}

/** Show one button in place of another, and keep the keyboard there. */
function swap(out: HTMLElement, into: HTMLElement): void {
  const held = document.activeElement === out;
  out.hidden = true;
  into.hidden = false;
  if (held) into.focus();
}

function side(title: string, { instructions, steps }: DerivedTrace): Side {
  return { title, instructions, steps };
}

function failureText({ failure, steps }: DerivedTrace): string {
  return failure
    ? `step ${failure.step} of ${steps.length} and more is refused: ${failure.message}`
    : "";
}

function keyOf(id: string, changes: Changes): string {
  return `${id} ${JSON.stringify(Object.entries(changes).sort(([a], [b]) => Number(a) - Number(b)))}`;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
