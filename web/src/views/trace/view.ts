/**
 * Trace: the schedule instructions of the program, the module and the loop nest after each of them,
 * decisions to change, times of steps, and another trace beside it.
 */

import { computed } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { setUpMenu } from "../../shell/menu";
import { button, choice, emptyNote, Pending, reactive, viewPanel, waitingNote } from "../kit";
import type { View, ViewContext } from "../view";
import { traceComparer } from "./compare";
import { decisions } from "./decisions";
import { exportItems } from "./exports";
import { NONE, RECORDED, TraceModel } from "./model";
import { onOpenTrace } from "./open";
import { readState, type TraceState } from "./state";
import { stepList } from "./steps";

export function traceView(context: ViewContext): View {
  const { session, busy, toast } = context;
  const panel = viewPanel("trace", "Trace");
  panel.classList.add("view-filled");
  const model = new TraceModel(context);
  const { traces, shown, beside, compared, progress } = model;
  /** What a link asked for, until a program has run. */
  let linked: TraceState | null = null;

  const steps = stepList({
    id: "trace",
    steps: computed(() => shown.value?.derived.steps ?? []),
    selected: model.step,
    times: model.times,
    running: computed(() => progress.value?.step ?? null),
  });
  const comparer = traceComparer(computed(() => compared.value));

  const exporter = ref((button) => {
    if (!button) return;
    setUpMenu(button as HTMLElement, "Export the trace", () =>
      shown.value ? exportItems(session, shown.value, model.times.value, toast) : [],
    );
  });

  const choosers = (): TemplateResult[] => {
    const id = model.asked.value?.id ?? shown.value?.trace.id ?? traces.value.at(-1)?.id ?? "";
    const others = [
      { id: NONE, title: "none" },
      ...(model.isChanged.value ? [{ id: RECORDED, title: "this one as recorded" }] : []),
      ...traces.value.filter((trace) => trace.id !== id),
    ];
    return [
      choice({
        label: "Schedule",
        options: traces.value,
        value: id,
        onChange: (next) => void model.show(traces.value.find((trace) => trace.id === next)!),
      }),
      choice({ label: "Compare with", id: "trace-second", options: others, value: beside }),
    ];
  };
  const timing = (running: boolean): TemplateResult =>
    running
      ? button("Stop timing", () => model.timer.stop(), { testId: "trace-time-stop" })
      : button("Time each step", () => model.timeEachStep(), {
          testId: "trace-time",
          disabled: busy.value || !shown.value,
        });
  const head = (): TemplateResult => {
    const running = progress.value !== null;
    const { done = 0, all = 1 } = progress.value ?? {};
    return html`<div class="trace-head">
      <div class="trace-choosers">${choosers()}</div>
      ${timing(running)}
      <button class="button" type="button" data-testid="trace-export" ${exporter}>Export</button>
      <p class="trace-said" role="status" data-testid="trace-said">${model.said.value}</p>
      <progress class="trace-progress ${running ? "is-running" : ""}" max=${all} .value=${done}
        aria-label="Steps timed"></progress>
    </div>`;
  };
  reactive(
    panel,
    () => {
      if (shown.error && !shown.stopped)
        return [head(), emptyNote("The trace cannot be replayed", shown.error)];
      if (!shown.value) {
        if (shown.busy) return waitingNote("Replaying the trace");
        return emptyNote(
          "No trace yet",
          "Run a program that schedules something. Each schedule instruction is a step, shown with the module after it.",
        );
      }
      return [head(), decisions(model), compared.value ? comparer : steps];
    },
    () => {
      panel.ariaBusy = shown.busy || compared.busy ? "true" : null;
    },
  );

  const load = new Pending(panel, () => {
    const state = linked;
    linked = null;
    const last = traces.value.at(-1);
    if (state) void model.follow(state);
    else if (last) void model.show(last);
  });
  onOpenTrace((trace) => {
    model.add(trace);
    load.drop();
    context.show("trace");
    void model.show(trace);
    void model.keepSteps(trace);
  });

  return {
    id: "trace",
    title: "Trace",
    panel,
    onResult(result) {
      if (!result.traces.length && !result.ok) return;
      model.reset(result);
      if (result.traces.length) load.ask();
      else {
        linked = null;
        load.drop();
      }
    },
    onShow: () => load.look(),
    state: () => model.state ?? linked,
    restore(state) {
      linked = readState(state);
    },
  };
}
