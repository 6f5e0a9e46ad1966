/** Search: sample schedules, build, check and time them; a chart, a table, and each trial's trace. */

import { Stopped } from "../../python/client";
import { element } from "../../dom";
import type { Trial, TrialDetails, TraceStep } from "../../python/protocol";
import { SearchChart } from "./chart";
import { comparison, milliseconds } from "../format";
import { viewPanel } from "../parts";
import { StepList } from "../trace/steps";
import { bestOf, failures, outcome, place, runs } from "./trials";
import type { View, ViewContext } from "../view";
import "./search.css";

/** Milliseconds that a stopped search waits for its last trial before Python is stopped. */
const PATIENCE = 4000;

/** Milliseconds between two drawings while trials come in. */
const DRAWING_INTERVAL = 200;

/** So many workers by default at most; more share caches, and disturb each other's times. */
const MOST_WORKERS = 4;

interface Search {
  id: string;
  title: string;
  planned: number;
  workers: number;
  /** When the first trial was asked for and when the last one was done, in milliseconds. */
  begun: number;
  ended: number;
  baseline: number | null;
  trials: Trial[];
  details: Map<number, Promise<[TrialDetails, TraceStep[]]>>;
}

export function searchView(context: ViewContext): View {
  const { session, editor, during, isBusy, show, toast } = context;
  const panel = viewPanel("search", "Search");

  const functions = element("select", { id: "search-function" });
  const modules = element("select", { id: "search-module" });
  const count = element("input", {
    id: "search-trials",
    "data-testid": "search-trials",
    type: "number",
    min: 1,
    max: 1000,
    value: 10,
    inputmode: "numeric",
  });
  const seed = element("input", { id: "search-seed", type: "number", min: 0, value: 0, inputmode: "numeric" });
  const workers = element("input", {
    id: "search-workers",
    "data-testid": "search-workers",
    type: "number",
    min: 1,
    max: 16,
    value: Math.min(navigator.hardwareConcurrency || 1, MOST_WORKERS),
    inputmode: "numeric",
  });
  const start = element("button", { class: "button primary", "data-testid": "search-start", type: "submit" }, "Start");
  const stop = element(
    "button",
    { class: "button", "data-testid": "search-stop", type: "button", disabled: true },
    "Stop",
  );
  const form = element(
    "form",
    { class: "search-form", "aria-label": "Search settings" },
    field("Schedule function", functions),
    field("Module", modules),
    field("Trials", count),
    field("Seed", seed),
    field("Workers", workers),
    element("div", { class: "actions" }, start, stop),
  );
  const hint = element("p", { class: "search-hint", "aria-live": "polite" });
  const bar = element("progress", { class: "search-progress", max: 1, value: 0, "aria-label": "Trials done" });
  const best = element("button", { class: "search-best", "data-testid": "search-best", type: "button", disabled: true });
  const rate = element("p", { class: "search-rate", "data-testid": "search-rate" });
  const failed = element("ul", { class: "search-failures", "data-testid": "search-failures", hidden: true });
  const chartBox = element("div", {
    class: "chart",
    "data-testid": "search-chart",
    role: "img",
    "aria-label": "Time per trial and best so far; the table below has the numbers",
  });
  const rows = element("tbody");
  const table = element(
    "table",
    { class: "trials" },
    element("caption", { class: "visually-hidden" }, "Trials of the search"),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ...["Trial", "Time, ms", "Against unscheduled", "Decisions"].map((name) => element("th", { scope: "col" }, name)),
      ),
    ),
    rows,
  );
  const detail = element("section", { class: "trial-detail", hidden: true, "aria-label": "Chosen trial" });
  const results = element(
    "div",
    { class: "search-results", hidden: true },
    element("div", { class: "search-summary" }, best, bar),
    rate,
    failed,
    element("div", { class: "legend", "aria-hidden": "true" },
      element("span", { class: "key trial" }, "trial"),
      element("span", { class: "key best" }, "best so far"),
      element("span", { class: "key base" }, "unscheduled"),
    ),
    chartBox,
    element("div", { class: "table-box" }, table),
    detail,
  );
  panel.append(form, hint, results);

  const chart = new SearchChart(chartBox, (index) => void choose(index));
  const steps = new StepList();
  let search: Search | null = null;
  let chosen: number | null = null;
  let stopping = false;
  let drawing = 0;
  const unshown: Trial[] = [];

  const update = (): void => {
    const known = functions.options.length > 0 && modules.options.length > 0;
    start.disabled = !known || isBusy();
    if (!known) {
      hint.textContent =
        "Run the program first: functions that take a schedule, and modules, are offered here.";
    }
  };

  async function run(): Promise<void> {
    const planned = whole(count, 1, 1000);
    const title = `${functions.value} on ${modules.value}`;
    const now: Search = {
      id: "",
      title,
      planned,
      workers: whole(workers, 1, 16),
      begun: 0,
      ended: 0,
      baseline: null,
      trials: [],
      details: new Map(),
    };
    search = now;
    stopping = false;
    chosen = null;
    detail.hidden = true;
    rows.replaceChildren();
    unshown.length = 0;
    results.hidden = false;
    hint.textContent = `Timing ${modules.value} as it stands …`;
    stop.disabled = false;
    report();
    try {
      const begun = await session.call(
        "search.begin",
        functions.value,
        modules.value,
        whole(seed, 0, 2 ** 31),
        planned,
        now.workers,
      );
      now.id = begun.id;
      now.baseline = begun.baselineSeconds;
      now.workers = begun.workers;
      now.begun = now.ended = performance.now();
      hint.textContent = `${title}: sampling`;
      while (!stopping) {
        const trial = await session.call("search.step", now.id);
        if (!trial) break;
        place(now.trials, trial);
        if (!trial.confirmed) now.ended = performance.now();
        if (now.trials.length === planned) hint.textContent = `${title}: measuring the best again, in turn`;
        unshown.push(trial);
        reportSoon();
      }
      hint.textContent = `${stopping ? "Stopped" : "Done"}: ${outcome(now.trials)}`;
    } catch (error) {
      const reason = error instanceof Stopped || stopping ? "Stopped" : `Failed: ${message(error)}`;
      hint.textContent = `${reason}. ${now.trials.length ? outcome(now.trials) : ""}`;
    } finally {
      if (now.id && session.state === "ready") session.call("search.finish", now.id).catch(() => undefined);
      stop.disabled = true;
      report();
      chart.show(now.trials, now.trials.length, now.baseline);
      const winner = bestOf(now.trials);
      if (winner && chosen === null) void choose(winner.index);
    }
  }

  function halt(): void {
    if (stopping) {
      void session.stop();
      return;
    }
    stopping = true;
    const halted = search;
    hint.textContent = "Stopping …";
    session.trials.stop();
    setTimeout(() => {
      if (search === halted && isBusy()) void session.stop();
    }, PATIENCE);
  }

  /** Drawing takes time from what is measured, so that one drawing shows several trials. */
  function reportSoon(): void {
    if (!drawing) drawing = window.setTimeout(report, DRAWING_INTERVAL);
  }

  function report(): void {
    clearTimeout(drawing);
    drawing = 0;
    if (!search) return;
    for (const trial of unshown.splice(0)) showRow(trial);
    const { trials, planned, baseline } = search;
    reportRate(search);
    reportFailures(trials);
    bar.max = planned;
    bar.value = trials.length;
    chart.show(trials, planned, baseline);
    const winner = bestOf(trials);
    best.disabled = !winner;
    best.replaceChildren(
      element("span", { class: "best-label" }, winner ? `Best, trial ${winner.index}` : "Best"),
      element("strong", {}, winner ? `${milliseconds(winner.seconds!)} ms` : "–"),
      element("span", { class: "best-label" }, winner && baseline ? comparison(winner.seconds!, baseline) : ""),
    );
    if (winner) best.dataset.ms = String(winner.seconds! * 1000);
    else delete best.dataset.ms;
    for (const row of rows.rows) row.classList.toggle("is-best", row.dataset.trial === String(winner?.index));
  }

  function reportRate({ trials, workers, begun, ended }: Search): void {
    const perSecond = ended > begun ? (runs(trials) * 1000) / (ended - begun) : null;
    const parts = [`${workers} ${workers === 1 ? "worker" : "workers"}`];
    if (perSecond !== null) parts.unshift(`${perSecond.toFixed(1)} trials/s`);
    rate.textContent = parts.join(" · ");
    rate.dataset.perSecond = String(perSecond ?? "");
  }

  function reportFailures(trials: Trial[]): void {
    const found = failures(trials);
    failed.hidden = found.length === 0;
    failed.replaceChildren(
      ...found.map(({ reason, count, first }) => {
        const open = element("button", { class: "failure", type: "button" }, `${count} failed: ${reason}`);
        open.addEventListener("click", () => void choose(first));
        return element("li", {}, open);
      }),
    );
  }

  /** Put a trial's row in its place; trials are done in another order than they were sampled. */
  function showRow(trial: Trial): void {
    const row = makeRow(trial);
    const all = rows.rows;
    let at = all.length;
    while (at > 0 && Number(all[at - 1]!.dataset.trial) >= trial.index) at -= 1;
    const there = all[at];
    if (there?.dataset.trial === String(trial.index)) there.replaceWith(row);
    else rows.insertBefore(row, there ?? null);
  }

  function makeRow(trial: Trial): HTMLTableRowElement {
    const { index, state, seconds, reason, sameAs, confirmed, decisions } = trial;
    const open = element("button", { class: "row-button", type: "button" }, String(index));
    open.setAttribute("aria-label", `Trial ${index}: show its trace`);
    const against = seconds !== null && search?.baseline ? comparison(seconds, search.baseline) : "";
    const row = element(
      "tr",
      { class: confirmed ? `trial-${state} trial-confirmed` : `trial-${state}`, "data-testid": "search-row", "data-trial": index, "data-state": state },
      element("td", {}, open),
      element("td", { class: "number" }, seconds === null ? "failed" : milliseconds(seconds)),
      element("td", { class: "number soft" }, state === "repeated" ? `as trial ${sameAs}` : against),
      element(
        "td",
        {},
        element("div", { class: "decisions" }, ...decisions.map((text) => element("code", { class: "chip" }, text))),
        reason ? element("div", { class: "reason" }, reason) : null,
      ),
    );
    row.addEventListener("click", () => void choose(index));
    row.setAttribute("aria-selected", String(index === chosen));
    if (confirmed) row.title = "Measured again at the end, in turn with the other best trials";
    return row;
  }

  /** Show a trial's trace and module; they are asked for once and kept. */
  async function choose(index: number): Promise<void> {
    const now = search;
    if (!now?.id) return;
    chosen = index;
    for (const row of rows.rows) {
      row.setAttribute("aria-selected", String(row.dataset.trial === String(index)));
    }
    try {
      let found = now.details.get(index);
      if (!found) {
        found = fetchDetails(now.id, index);
        now.details.set(index, found);
        found.catch(() => now.details.delete(index));
      }
      const [details, modules] = await found;
      if (search === now && chosen === index) showDetails(now, index, details, modules);
    } catch (error) {
      if (search !== now || chosen !== index) return;
      detail.hidden = false;
      const text =
        error instanceof Stopped || message(error).includes("no search")
          ? "Python was restarted since; the details of this trial are gone."
          : message(error);
      detail.replaceChildren(element("p", { class: "reason" }, text));
    }
  }

  async function fetchDetails(id: string, index: number): Promise<[TrialDetails, TraceStep[]]> {
    const details = await session.call("search.details", id, index);
    const modules = details.trace ? await session.call("trace_view.trace_steps", details.trace.id) : [];
    return [details, modules];
  }

  function showDetails(now: Search, index: number, details: TrialDetails, modules: TraceStep[]): void {
    const trial = now.trials.find((each) => each.index === index);
    const use = element("button", { class: "button", "data-testid": "search-use" }, "Use in editor");
    use.hidden = details.code === null;
    use.addEventListener("click", () => {
      show("editor");
      editor.append(details.code!);
      toast("The schedule was appended to the program");
    });
    const time = trial?.seconds ? `, ${milliseconds(trial.seconds)} ms` : "";
    detail.hidden = false;
    detail.replaceChildren(
      element("header", { class: "card-head" }, element("h2", {}, `Trial ${index}${time}`), use),
      trial?.reason ? element("p", { class: "reason" }, trial.reason) : "",
      details.trace ? steps.root : "",
    );
    if (details.trace) steps.show(details.trace, modules);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!start.disabled) void during(`Searching ${modules.value}`, halt, run);
  });
  stop.addEventListener("click", halt);
  best.addEventListener("click", () => {
    const winner = search && bestOf(search.trials);
    if (winner) void choose(winner.index);
  });
  rows.addEventListener("keydown", (event) => {
    const row = (event.target as HTMLElement).closest("tr");
    const next = event.key === "ArrowDown" ? row?.nextElementSibling : event.key === "ArrowUp" ? row?.previousElementSibling : null;
    if (!next) return;
    event.preventDefault();
    next.querySelector("button")?.focus();
    void choose(Number((next as HTMLElement).dataset.trial));
  });
  update();

  return {
    id: "search",
    title: "Search",
    panel,
    onResult({ searchFunctions, searchModules }) {
      if (searchFunctions.length) refill(functions, searchFunctions.map(({ name }) => name), "stochastic");
      if (searchModules.length) refill(modules, searchModules.map(({ name }) => name));
      if (!search) hint.textContent = "";
    },
    onRestart() {
      functions.replaceChildren();
      modules.replaceChildren();
      update();
    },
    onActivity: update,
    onShow: report,
  };
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element("label", { class: "field", for: control.id }, label, control);
}

/** The whole number that a field holds, brought into its bounds; the field shows what is meant. */
function whole(input: HTMLInputElement, least: number, most: number): number {
  const value = Math.min(most, Math.max(least, Math.round(input.valueAsNumber) || least));
  input.value = String(value);
  return value;
}

/** New options, keeping the choice where it is still there; else the first that has `preferred`. */
function refill(select: HTMLSelectElement, names: string[], preferred = ""): void {
  const old = select.value;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(old) ? old : (names.find((name) => name.includes(preferred)) ?? names[0]!);
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
