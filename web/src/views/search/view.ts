/** Search: schedules are sampled, built, checked and timed; charts, a table, and each trial's steps. */

import { element } from "../../dom";
import { MAX_SEARCHES, type SearchNews } from "../../python/wire";
import { setUpTabs } from "../../shell/tabs";
import { viewPanel } from "../parts";
import type { View, ViewContext } from "../view";
import { ComparePanel } from "./compare_panel";
import { DecisionsPanel } from "./decisions_panel";
import { TrialDetail } from "./detail";
import { SearchForm } from "./form";
import { SearchLead } from "./lead";
import { ModelPanel } from "./model_panel";
import type { SearchPanel } from "./panel";
import { openStore, RecordWriter } from "./records";
import { RecordsPanel } from "./records_panel";
import { Search } from "./search";
import { Summary } from "./summary";
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
  const searches: Search[] = [];
  let shown: Search | null = null;
  let chosen: number | null = null;
  let timer = 0;
  let studied = 0;

  const hint = element("p", {
    class: "search-hint",
    "aria-live": "polite",
    "data-testid": "search-hint",
  });
  const form = new SearchForm({ start, pause, stop });
  const summary = new Summary(choose);
  const table = new TrialTable(choose);
  const detail = new TrialDetail(session, {
    use(code, told) {
      show("editor");
      editor.append(code);
      toast(told);
    },
    during: (what, work) => during(what, () => void session.stop(), work),
  });
  const store = openStore();
  const records = new RecordsPanel(store, session, toast);
  const writer = new RecordWriter(store, () => void records.refresh());
  const panels: SearchPanel[] = [
    new TimesPanel(choose),
    new DecisionsPanel(choose),
    new ModelPanel(choose),
    new ComparePanel(),
    records,
  ];
  let front = panels[0]!;
  const kept = element("select", { id: "search-shown", "data-testid": "search-shown" });
  const keptField = element(
    "label",
    { class: "field search-kept", for: "search-shown", hidden: true },
    "Shown",
    kept,
  );
  const tabs = element("div", {
    class: "subtabs",
    role: "tablist",
    "aria-label": "Aspects of the search",
  });
  const panelBox = element("div", { class: "search-panels" });
  for (const { root, id, title } of panels) {
    root.id = `panel-${id}`;
    root.setAttribute("role", "tabpanel");
    root.setAttribute("aria-label", title);
    panelBox.append(root);
  }
  const list = setUpTabs(
    tabs,
    panels.map(({ id, title, root }) => ({ id, title, panel: root })),
    (id) => {
      for (const each of panels) each.root.hidden = each.id !== id;
      front = panels.find((each) => each.id === id)!;
      front.show(shown, searches);
    },
  );
  list.select(front.id);
  const results = element(
    "div",
    { class: "search-results" },
    summary.root,
    tabs,
    panelBox,
    table.root,
    detail.root,
  );
  results.classList.add("empty-search");
  panel.append(form.root, element("div", { class: "search-head" }, hint, keptField), results);

  const lead = new SearchLead(session, store, writer, {
    say: (text) => {
      hint.textContent = text;
    },
    onTrial: reportSoon,
    onState(search) {
      update();
      report();
      if (search.state !== "running" && search === shown && chosen === null) chooseBest();
    },
  });

  function start(): void {
    const settings = form.settings();
    const name =
      form.isModel && settings.function
        ? `${settings.function} of ${settings.module}`
        : settings.module;
    const search = new Search(name, settings, settings.trials, form.isModel);
    keep(search);
    display(search);
    void during(`Searching ${name}`, stop, () => lead.start(search, settings, records.reused));
  }

  function pause(): void {
    if (lead.isPaused && lead.current) {
      if (isBusy()) return;
      display(lead.current);
      void during(`Searching ${lead.current.title}`, stop, () => lead.resume());
    } else lead.pause();
  }

  function stop(): void {
    lead.stop();
  }

  function keep(search: Search): void {
    searches.push(search);
    for (const old of searches.splice(0, searches.length - MAX_SEARCHES)) {
      detail.forget(old);
      if (old.id && session.state === "ready")
        session.call("search.forget", old.id).catch(() => undefined);
    }
    kept.replaceChildren(
      ...searches.map(({ number, name }) => element("option", { value: number }, name)),
    );
    keptField.hidden = searches.length < 2;
  }

  function display(search: Search): void {
    shown = search;
    chosen = null;
    kept.value = String(search.number);
    results.classList.remove("empty-search");
    if (search !== lead.current) hint.textContent = told(search);
    detail.hide();
    table.show(search);
    report();
  }

  /** Drawing takes time from what is measured, so that one drawing shows several trials. */
  function reportSoon(search: Search): void {
    if (search === shown && !timer) timer = window.setTimeout(report, DRAWING_INTERVAL);
  }

  function report(): void {
    clearTimeout(timer);
    timer = 0;
    if (!panel.offsetParent) return;
    summary.show(shown);
    table.update();
    const option = kept.selectedOptions[0];
    if (option && shown) option.dataset.trials = String(shown.trials.length);
    const now = performance.now();
    const settled = shown?.state !== "running";
    if (front !== panels[0] && !settled && now - studied < STUDY_INTERVAL) return;
    studied = now;
    front.show(shown, searches);
  }

  function choose(index: number): void {
    if (!shown) return;
    chosen = index;
    table.choose(index);
    void detail.show(shown, index);
  }

  function chooseBest(): void {
    const winner = shown && bestOf(shown.trials);
    if (winner) choose(winner.index);
  }

  function update(): void {
    form.show({ running: lead.isRunning, busy: isBusy(), paused: lead.isPaused });
    if (!form.known) {
      hint.textContent =
        "Run the program first: functions that take a schedule, and modules, are offered here.";
    }
  }

  kept.addEventListener("change", () => {
    const search = searches.find(({ number }) => String(number) === kept.value);
    if (!search) return;
    display(search);
    if (search.state !== "running") chooseBest();
  });

  const byProgram = new Map<string, { search: Search; since: number }>();

  /** A search that a program runs by itself. */
  function onNews({ id, start: begun, trials, over }: SearchNews): void {
    if (begun) {
      const search = new Search(begun.title, null, begun.planned);
      search.begin(begun);
      search.workload = begun.workload;
      byProgram.set(id, { search, since: performance.now() });
      keep(search);
      display(search);
    }
    const led = byProgram.get(id);
    if (!led) return;
    const { search, since } = led;
    search.spent = performance.now() - since;
    for (const told of trials) {
      if (told.record && search.workload) writer.add(search.workload, told.record);
      search.add(told);
    }
    if (over) end(id);
    reportSoon(search);
  }

  function end(id: string): void {
    const led = byProgram.get(id);
    byProgram.delete(id);
    if (!led) return;
    led.search.state = "ended";
    if (led.search === shown) hint.textContent = told(led.search);
  }

  session.on("event", (name, data) => {
    if (name === "search") onNews(data as SearchNews);
  });
  update();

  return {
    id: "search",
    title: "Search",
    panel,
    onResult({ searchFunctions, searchModules }) {
      form.offer(
        searchFunctions.map(({ name }) => name),
        searchModules,
      );
      if (!lead.current) hint.textContent = "";
    },
    onRestart() {
      form.forget();
      lead.onRestart();
      for (const id of [...byProgram.keys()]) end(id);
      for (const search of searches) search.id = "";
      update();
    },
    onActivity: update,
    onShow: report,
    state: () => form.state(),
    restore: (state) => form.restore(state),
  };
}

/** Where a search is that the reader does not lead just now. */
function told({ state, title, trials }: Search): string {
  return state === "running" ? `${title}: sampling` : `Ended: ${outcome(trials)}`;
}
