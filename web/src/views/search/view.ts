/** Search: schedules are sampled, built, checked and timed; charts, a table, and each trial's steps. */

import { batch, computed, effect, signal } from "@preact/signals-core";
import { html, noChange, type TemplateResult } from "lit-html";
import { element } from "../../dom";
import { MAX_SEARCHES, type SearchNews } from "../../python/wire";
import { setUpTabs } from "../../shell/tabs";
import { choice, reactive, viewPanel } from "../kit";
import type { View, ViewContext } from "../view";
import { ComparePanel } from "./compare_panel";
import { SearchController } from "./controller";
import { DecisionsPanel } from "./decisions_panel";
import { TrialDetail } from "./detail";
import { type FormState, SearchForm } from "./form";

import { ModelPanel } from "./model_panel";
import type { SearchPanel } from "./panel";
import { openStore, RecordWriter } from "./records";
import { RecordsPanel } from "./records_panel";
import { Search } from "./search";
import { summary } from "./summary";
import { TrialTable } from "./table";
import { TimesPanel } from "./times_panel";
import { bestOf, outcome } from "./trials";
import "./search.css";

/** Milliseconds between two drawings while trials come in: of the chart, and of all else. */
const DRAWING_INTERVAL = 200;
const STUDY_INTERVAL = 1000;

export function searchView(context: ViewContext): View {
  const { session, editor, during, isBusy, show, toast } = context;
  const panel = viewPanel("search", "Search");
  const searches = signal<readonly Search[]>([]);
  /** The open document, whose searches are shown. */
  const owner = signal("");
  const own = computed(() => searches.value.filter((each) => each.document === owner.value));
  /** The search that was looked at last, by document. */
  const looked = new Map<string, Search>();
  const shown = signal<Search | null>(null);
  const chosen = signal<number | null>(null);
  const said = signal("");
  const front = signal("search-times");
  const state = signal<FormState>({ running: false, busy: isBusy(), paused: false });
  /** Drawings of the trials so far, and of the panels other than the chart. */
  const drawn = signal(0);
  const studied = signal(0);
  let studiedAt = 0;
  let timer = 0;

  const form = new SearchForm({ start, pause, stop });
  const table = new TrialTable(choose);
  const detail = new TrialDetail(session, {
    use(code, done) {
      show("editor");
      editor.append(code);
      toast(done);
    },
    during: (what, work) => during(what, () => void session.stop(), work),
  });
  const store = openStore();
  const records = new RecordsPanel(store, session, toast);
  const writer = new RecordWriter(store, () => void records.refresh());
  const controller = new SearchController(session, store, writer, {
    say: (text) => {
      if (controller.current?.document === owner.value) said.value = text;
    },
    onTrial: reportSoon,
    onState(search) {
      update();
      report();
      if (search.state !== "running" && search === shown.value && chosen.value === null)
        chooseBest();
    },
  });

  const panels = [
    new TimesPanel(choose),
    new DecisionsPanel(choose),
    new ModelPanel(choose),
    new ComparePanel(),
    records,
  ].map((each: SearchPanel) => {
    const { id, title } = each;
    const root = element("div", {
      class: "search-panel",
      id: `panel-${id}`,
      role: "tabpanel",
      "aria-label": title,
    });
    reactive(root, () => {
      if (front.value !== id) return noChange;
      void studied.value;
      return each.template(shown.value, own.value);
    });
    effect(() => {
      root.hidden = front.value !== id;
    });
    return { id, title, panel: root };
  });
  const tabs = element("div", {
    class: "subtabs",
    role: "tablist",
    "aria-label": "Aspects of the search",
  });
  setUpTabs(tabs, panels, (id) => {
    front.value = id;
    if (id === records.id) void records.refresh();
  }).select(front.value);
  const panelBox = element("div", { class: "search-panels" }, ...panels.map((each) => each.panel));

  reactive(panel, (): TemplateResult => {
    void drawn.value;
    const options = own.value.map(({ number, name }) => ({ id: String(number), title: name }));
    const hint = form.hasModules
      ? said.value
      : "Run the program first: functions that take a schedule, and modules, are offered here.";
    return html`${form.template(state.value)}
      <div class="search-head">
        <p class="search-hint" aria-live="polite" data-testid="search-hint">${hint}</p>
        <div class="search-kept">${choice({
          label: "Shown",
          id: "search-shown",
          options,
          value: String(shown.value?.number ?? ""),
          onChange: display,
        })}</div>
      </div>
      <div class="search-results ${shown.value ? "" : "empty-search"}">
        ${summary(shown.value, choose)}${tabs}${panelBox}
        ${table.template(shown.value, chosen.value)}${detail.root}
      </div>`;
  });

  function start(): void {
    const settings = { ...form.settings(), document: owner.value };
    const name =
      form.isModel && settings.function
        ? `${settings.function} of ${settings.module}`
        : settings.module;
    const search = new Search(owner.value, name, settings, settings.trials, form.isModel);
    keep(search);
    void during(`Searching ${name}`, stop, () =>
      controller.start(search, settings, records.reused),
    );
  }

  function pause(): void {
    const { current } = controller;
    if (!controller.isPaused || !current) controller.pause();
    else if (!isBusy()) {
      open(current);
      void during(`Searching ${current.title}`, stop, () => controller.resume());
    }
  }

  function stop(): void {
    controller.stop();
  }

  /** Keep a new search, and show it. */
  function keep(search: Search): void {
    const all = [...searches.value, search];
    const old = all.splice(0, all.length - MAX_SEARCHES);
    for (const each of old) {
      detail.forget(each);
      if (looked.get(each.document) === each) looked.delete(each.document);
      if (each.id && session.state === "ready")
        session.call("search.forget", each.id).catch(() => undefined);
    }
    searches.value = all;
    looked.set(search.document, search);
    if (search.document === owner.value) open(search);
  }

  /** Show the searches of another document. */
  function turnTo(document: string): void {
    owner.value = document;
    form.forget();
    const search = looked.get(document) ?? null;
    if (search) {
      open(search);
      return;
    }
    shown.value = chosen.value = null;
    said.value = "";
    detail.hide();
  }

  function open(search: Search): void {
    looked.set(search.document, search);
    batch(() => {
      shown.value = search;
      chosen.value = null;
      if (search !== controller.current) said.value = statusText(search);
      detail.hide();
    });
    report();
  }

  /** Show the search of a number. */
  function display(number: string): void {
    const search = searches.value.find((each) => String(each.number) === number);
    if (!search) return;
    open(search);
    if (search.state !== "running") chooseBest();
  }

  /** Drawing takes time from what is measured, so that one drawing shows several trials. */
  function reportSoon(search: Search): void {
    if (search === shown.value && !timer) timer = window.setTimeout(report, DRAWING_INTERVAL);
  }

  function report(): void {
    clearTimeout(timer);
    timer = 0;
    if (!panel.offsetParent) return;
    const now = performance.now();
    const running = shown.value?.state === "running";
    const study = front.value === "search-times" || !running || now - studiedAt >= STUDY_INTERVAL;
    batch(() => {
      drawn.value += 1;
      if (study) studied.value += 1;
    });
    if (study) studiedAt = now;
  }

  function choose(index: number): void {
    if (!shown.value) return;
    chosen.value = index;
    void detail.show(shown.value, index);
  }

  function chooseBest(): void {
    const winner = shown.value && bestOf(shown.value.trials);
    if (winner) choose(winner.index);
  }

  function update(): void {
    state.value = { running: controller.isRunning, busy: isBusy(), paused: controller.isPaused };
  }

  const byProgram = new Map<string, { search: Search; since: number }>();

  /** A search that a program runs by itself. */
  function onNews({ id, start: begun, trials, over }: SearchNews): void {
    if (begun) {
      if (!owner.value) turnTo(begun.document);
      const search = new Search(begun.document, begun.title, null, begun.planned);
      search.begin(begun);
      search.workload = begun.workload;
      byProgram.set(id, { search, since: performance.now() });
      keep(search);
    }
    const running = byProgram.get(id);
    if (!running) return;
    const { search, since } = running;
    search.spent = performance.now() - since;
    for (const trial of trials) {
      if (trial.record && search.workload) writer.add(search.workload, trial.record);
      search.add(trial);
    }
    if (over) end(id);
    reportSoon(search);
  }

  function end(id: string): void {
    const running = byProgram.get(id);
    byProgram.delete(id);
    if (!running) return;
    running.search.state = "ended";
    if (running.search === shown.value) said.value = statusText(running.search);
  }

  session.on("event", (name, data) => {
    if (name === "search") onNews(data as SearchNews);
  });

  return {
    id: "search",
    title: "Search",
    panel,
    onResult({ document, searchFunctions, searchModules }) {
      if (document !== owner.value) turnTo(document);
      form.offer(
        searchFunctions.map(({ name }) => name),
        searchModules,
      );
      if (!shown.value) said.value = "";
    },
    onRestart() {
      form.forget();
      controller.onRestart();
      for (const id of [...byProgram.keys()]) end(id);
      for (const search of searches.value) search.id = "";
      update();
    },
    onActivity: update,
    onShow: report,
    state: () => form.state(),
    restore: (linked) => form.restore(linked),
  };
}

/** Where a search is that the reader does not control just now. */
function statusText({ state, title, tried, trials }: Search): string {
  return state === "running" ? `${title}: sampling` : `Ended: ${outcome(tried, trials)}`;
}
