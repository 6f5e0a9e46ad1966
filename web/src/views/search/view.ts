/** Search: schedules are sampled, built, checked and timed; charts, a table, and each trial's steps. */

import { batch, computed, effect, signal } from "@preact/signals-core";
import { html, noChange, type TemplateResult } from "lit-html";
import { element } from "../../dom";
import { MAX_SEARCHES, type SearchNews } from "../../python/wire";
import { setUpTabs } from "../../shell/tabs";
import { choice, paced, reactive, viewPanel } from "../kit";
import type { View, ViewContext } from "../view";
import { ComparePanel } from "./compare_panel";
import { SearchController } from "./controller";
import { DecisionsPanel } from "./decisions_panel";
import { TrialDetail } from "./detail";
import { SearchForm } from "./form";
import { ModelPanel } from "./model_panel";
import { RecordStore, RecordWriter } from "./records";
import { RecordsPanel } from "./records_panel";
import { Search } from "./search";
import { summary } from "./summary";
import { TrialTable } from "./table";
import { TimesPanel } from "./times_panel";
import { bestOf } from "./trials";
import "./search.css";

/** When to draw while trials come in: the chart, and all else. Drawing takes time from what is
 * measured, so that one drawing shows several trials. */
const drawSoon = (draw: () => void): unknown => setTimeout(draw, 200);
const studySoon = (study: () => void): unknown => setTimeout(study, 1000);

export function searchView(context: ViewContext): View {
  const { session, during, busy, toast } = context;
  const panel = viewPanel("search", "Search");
  const searches = signal<readonly Search[]>([]);
  /** The open document, whose searches are shown. */
  const owner = signal("");
  const own = computed(() => searches.value.filter((each) => each.document === owner.value));
  /** The search that was looked at last, by document. */
  const looked = new Map<string, Search>();
  const shown = signal<Search | null>(null);
  const chosen = signal<number | null>(null);
  const front = signal("search-times");
  const version = computed(() => shown.value?.version.value ?? 0);
  const drawn = paced(version, drawSoon, panel);
  const studied = paced(version, studySoon, panel);

  const form = new SearchForm({ start, pause, stop });
  const table = new TrialTable(choose);
  const detail = new TrialDetail(context);
  const store = new RecordStore();
  const records = new RecordsPanel(store, session, toast);
  const writer = new RecordWriter(store, () => void records.refresh());
  const controller = new SearchController(session, store, writer);
  const look = (): void => {
    drawn.look();
    studied.look();
  };
  effect(() => {
    // What rests is shown as it is, with its best trial until another one is chosen.
    if (!shown.value || shown.value.state.value === "running") return;
    look();
    const best = chosen.peek() === null && bestOf(shown.value.trials);
    if (best) choose(best.index);
  });

  const panels = [
    new TimesPanel(choose),
    new DecisionsPanel(choose),
    new ModelPanel(choose),
    new ComparePanel(),
    records,
  ].map((each) => {
    const { id, title } = each;
    const root = element("div", {
      class: "search-panel",
      id: `panel-${id}`,
      role: "tabpanel",
      "aria-label": title,
    });
    reactive(root, () => {
      root.hidden = front.value !== id;
      if (root.hidden) return noChange;
      void (id === "search-times" ? drawn : studied).value;
      return each.template(shown.value, own.value);
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
    const paused = controller.isPaused;
    const hint = form.hasModules
      ? shown.value?.said.value
      : "Nothing to search yet. The modules that a program makes, and its functions that take a schedule, are offered here once it has run.";
    return html`${form.template({ running: controller.running.value, busy: busy.value, paused })}
      <div class="search-head">
        <p class="search-hint" aria-live="polite" data-testid="search-hint">${hint}</p>
        ${choice({
          label: "Shown",
          id: "search-shown",
          options: own.value.map(({ number, name }) => ({ id: String(number), title: name })),
          value: String(shown.value?.number ?? ""),
          onChange: (id) => open(own.value.find(({ number }) => String(number) === id)!),
        })}
      </div>
      <div class="search-results ${shown.value ? "" : "empty-search"}">
        ${summary(shown.value, choose)}${tabs}${panelBox}
        ${table.template(shown.value, chosen.value)}${detail.root}
      </div>`;
  });

  function start(): void {
    const settings = { ...form.settings(), document: owner.value };
    const { module, function: name, trials } = settings;
    const title = form.isModel && name ? `${name} of ${module}` : module;
    const search = new Search(owner.value, title, settings, trials, form.isModel);
    keep(search);
    void during(`Searching ${title}`, stop, () =>
      controller.start(search, settings, records.reused.value),
    );
  }

  function pause(): void {
    const { current } = controller;
    if (!controller.isPaused || !current) controller.pause();
    else if (!busy.value) {
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
    for (const old of all.splice(0, all.length - MAX_SEARCHES)) {
      detail.forget(old);
      if (looked.get(old.document) === old) looked.delete(old.document);
      if (old.id && session.state === "ready")
        session.call("search.forget", old.id).catch(() => undefined);
    }
    searches.value = all;
    looked.set(search.document, search);
    if (search.document === owner.value) open(search);
  }

  function open(search: Search | null): void {
    if (search) looked.set(search.document, search);
    batch(() => {
      chosen.value = null;
      shown.value = search;
      detail.hide();
    });
  }

  /** Show the searches of another document. */
  function turnTo(document: string): void {
    owner.value = document;
    form.forget();
    open(looked.get(document) ?? null);
  }

  function choose(index: number): void {
    if (!shown.value) return;
    chosen.value = index;
    void detail.show(shown.value, index);
  }

  /** Those that programs run by themselves. */
  const byProgram = new Map<string, Search>();

  /** A search that a program runs by itself. */
  function onNews(news: SearchNews): void {
    const { id, start: begun } = news;
    if (begun) {
      if (!owner.value) turnTo(begun.document);
      const search = new Search(begun.document, begun.title, null, begun.planned);
      search.said.value = `${begun.title}: sampling`;
      byProgram.set(id, search);
      keep(search);
    }
    const running = byProgram.get(id);
    if (!running) return;
    running.spent = performance.now() - running.since;
    controller.take(running, news);
    if (news.over) end(id);
  }

  function end(id: string): void {
    byProgram.get(id)?.rest("ended", "Ended");
    byProgram.delete(id);
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
      form.offer(searchFunctions, searchModules);
    },
    onRestart() {
      form.forget();
      controller.onRestart();
      for (const id of [...byProgram.keys()]) end(id);
      for (const search of searches.value) search.id = "";
    },
    onShow: look,
    state: () => form.state(),
    restore: (linked) => form.restore(linked),
  };
}
