/** Why is it faster? The accesses of a program in motion, what a cache makes of them, and words. */

import { element } from "../../dom";
import { Stopped } from "../../python/client";
import { onThemeChange } from "../../theme";
import { peakOf, Roofline, sentence } from "../code/roofline";
import { emptyNote, viewPanel } from "../parts";
import type { View, ViewContext } from "../view";
import "./access.css";
import { BufferGrid, type Palette, palette } from "./grid";
import { BadgedListing } from "./listing";
import { Player, wantsLittleMotion } from "./player";
import { Replay } from "./replay";
import { type Accesses, type AccessReport, type AccessResult, accessesOf, hitsOf } from "./report";
import { Settings } from "./settings";
import { accessSentence, accessTable, cacheTable } from "./tables";

const NO_OTHER = "none";
/** Between grids, in pixels; style sheets have it as a space. */
const GAP = 14;

export function accessView(context: ViewContext): View {
  const { session, during, looking, isBusy } = context;
  const panel = viewPanel("access", "Why is it faster?");

  const settings = new Settings({
    onProgram: () => void load(null, null),
    onChoice: () => void load(settings.function, settings.other),
    onCache: () => void simulate(),
  });
  const note = element("p", { class: "access-note", role: "status", "data-testid": "access-note" });
  const sentences = element("ul", { class: "access-sentences", "data-testid": "access-sentences" });
  const grids = element("div", { class: "buffer-grids" });
  const caption = element("p", { class: "access-caption", "data-testid": "access-caption" });
  const player = new Player({
    goTo,
    nextMiss: () => replay?.nextMiss() ?? 0,
    describe: () => (replay ? accessSentence(replay) : ""),
    onPlaying: showPlaying,
    isVisible: () => !panel.hidden,
  });
  const around = element(
    "details",
    { class: "access-around" },
    element("summary", {}, "The accesses around it, as a table"),
  );
  const aroundBox = element("div", {
    class: "table-box",
    tabindex: 0,
    role: "region",
    "aria-label": "Accesses around it",
  });
  around.append(aroundBox);
  const stage = element(
    "div",
    {
      class: "access-stage",
      tabindex: 0,
      role: "group",
      "aria-label": "Accesses in motion: arrow keys step, Space plays",
      "data-testid": "access-stage",
    },
    grids,
  );
  const listing = new BadgedListing();
  const tableBox = element("div", {
    class: "table-box",
    tabindex: 0,
    role: "region",
    "aria-label": "Hits of the cache",
  });

  const roofline = new Roofline();
  const measure = element(
    "button",
    { class: "button", type: "button", "data-testid": "access-measure" },
    "Measure",
  );
  const outcome = element("p", { class: "roofline-outcome", "aria-live": "polite" });
  const rooflineBox = element(
    "section",
    {
      class: "card roofline-card",
      "data-testid": "access-roofline",
      "aria-label": "Speed against the machine’s peak",
    },
    element("header", { class: "card-head" }, outcome, measure),
    roofline.root,
  );
  const content = element(
    "div",
    { class: "access-view", "data-testid": "access-view" },
    settings.programs,
    note,
    section("What changes", sentences),
    section("In motion", stage, player.root, caption, legend(), around),
    section("The program that ran", listing.root),
    section("What the cache sees", settings.cache, tableBox, footnote()),
    rooflineBox,
  );
  const nothing = emptyNote(
    "Nothing to look at yet",
    "Run a program that defines a module. Here is in which order it touches memory, what a cache makes of that, and what a schedule changes.",
  );
  panel.append(nothing);

  let report: AccessReport | null = null;
  let accesses: Accesses | null = null;
  let replay: Replay | null = null;
  let drawn: BufferGrid[] = [];
  let colours: Palette | null = null;
  /** Another program has to be recorded when the view is next in sight. */
  let stale = false;
  let request = 0;
  let asking = new AbortController();
  let frame = 0;

  /** Ask for something in the place of what was asked before. */
  function ask(): { signal: AbortSignal; mine: number } {
    asking.abort();
    asking = new AbortController();
    request += 1;
    return { signal: asking.signal, mine: request };
  }

  async function load(functionName: string | null, other: string | null): Promise<void> {
    stale = false;
    const { signal, mine } = ask();
    player.pause();
    panel.setAttribute("aria-busy", "true");
    const compared = other === null ? "" : other === NO_OTHER ? null : other;
    const look = (): Promise<AccessReport> =>
      session.look(
        signal,
        "access_view.explain",
        settings.program,
        functionName,
        compared,
        settings.size,
        settings.settings,
      );
    try {
      const answer = await looking("Recording accesses", () => void session.stop(), look);
      if (mine === request) show(answer);
    } catch (error) {
      if (mine === request) fail(error, functionName, other);
    } finally {
      if (mine === request) panel.removeAttribute("aria-busy");
    }
  }

  function fail(error: unknown, functionName: string | null, other: string | null): void {
    report = replay = null;
    const stopped = error instanceof Stopped || message(error) === "stopped";
    const again = element("button", { class: "button", type: "button" }, "Record again");
    again.addEventListener("click", () => void load(functionName, other));
    const why = emptyNote(
      stopped ? "Stopped" : "The accesses cannot be shown",
      stopped ? "The recording was stopped." : message(error),
    );
    // What was chosen stays in reach, so that something else can be chosen.
    panel.replaceChildren(
      element(
        "div",
        { class: "access-view", "data-testid": "access-view" },
        settings.programs,
        why,
        element("p", { class: "access-again" }, again),
      ),
    );
  }

  function show(answer: AccessReport): void {
    report = answer;
    accesses = accessesOf(answer);
    settings.show(answer, answer.other ?? NO_OTHER);
    note.textContent = answer.size.note;
    content.prepend(settings.programs);
    panel.replaceChildren(content);
    listing.show(answer);
    outcome.textContent = `Measure ${answer.function} to see how close it comes to what this tab can do.`;
    roofline.root.hidden = true;
    showResult(answer.result);
    update();
    if (!wantsLittleMotion()) player.start();
  }

  /** Ask for another cache, and begin anew. */
  async function simulate(): Promise<void> {
    const now = report;
    if (!now) return;
    const { signal, mine } = ask();
    player.pause();
    tableBox.setAttribute("aria-busy", "true");
    try {
      const answer = await session.look(
        signal,
        "access_view.simulate",
        settings.program,
        now.function,
        now.other,
        now.size.most,
        settings.settings,
      );
      if (mine === request) showResult(answer);
    } catch (error) {
      if (mine === request && !(error instanceof Stopped)) note.textContent = message(error);
    } finally {
      if (mine === request) tableBox.removeAttribute("aria-busy");
    }
  }

  function showResult(result: AccessResult): void {
    if (!report || !accesses) return;
    const { buffers, sites } = report;
    report = { ...report, result };
    replay = new Replay(buffers, sites, accesses, hitsOf(result), settings.settings.line);
    sentences.replaceChildren(...result.sentences.map((text) => element("li", {}, text)));
    sentences.previousElementSibling!.textContent = result.other ? "What changes" : "What it does";
    tableBox.replaceChildren(cacheTable(report, result, settings.otherTitle));
    const now = replay;
    drawn = buffers.map((_, index) => new BufferGrid(now, index));
    grids.replaceChildren(...drawn.map(({ root }) => root));
    fitGrids();
    player.reset(replay.count);
  }

  function goTo(position: number): void {
    replay?.goTo(position);
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }

  function draw(): void {
    if (!replay || panel.hidden) return;
    colours ??= palette(panel);
    for (const grid of drawn) grid.draw(colours, !wantsLittleMotion(), player.playing);
    caption.textContent = accessSentence(replay);
    const { position } = replay;
    listing.mark(position ? replay.sites[replay.accesses.site[position - 1]!]!.line : null);
    if (around.open && !player.playing) aroundBox.replaceChildren(accessTable(replay));
  }

  /** Give every grid the same width, as many beside each other as the view is wide. */
  function fitGrids(): void {
    const width = grids.clientWidth;
    if (!width) return;
    const beside = Math.max(1, Math.min(drawn.length, Math.floor(width / 112)));
    for (const grid of drawn) grid.fit(Math.floor((width - GAP * (beside - 1)) / beside));
    draw();
  }

  function showPlaying(): void {
    // A sentence that changes many times a second is not to be read out.
    caption.setAttribute("aria-live", player.playing ? "off" : "polite");
    draw();
  }

  async function runMeasurement(): Promise<void> {
    const now = report;
    if (!now) return;
    outcome.textContent = `Measuring ${now.function}, and what this tab can do at best …`;
    try {
      const result = await session.call(
        "code_measure.measure",
        settings.program,
        now.function,
        null,
      );
      if (report?.stream !== now.stream) return;
      const { operations } = now;
      const moved = report.result.total.bytes;
      outcome.textContent = sentence(now.function, result);
      rooflineBox.dataset.gflops = String(result.rate / 1e9);
      rooflineBox.dataset.peak = String(peakOf(result) / 1e9);
      roofline.root.hidden = false;
      roofline.show(now.function, result, operations && moved ? operations / moved : null);
    } catch (error) {
      outcome.textContent =
        error instanceof Stopped ? "Stopped." : `It cannot be measured: ${message(error)}`;
    }
  }

  function update(): void {
    measure.disabled = isBusy() || !report;
  }

  stage.addEventListener("keydown", (event) => player.onKey(event));
  around.addEventListener("toggle", draw);
  measure.addEventListener("click", () => {
    if (report)
      void during(`Measuring ${report.function}`, () => void session.stop(), runMeasurement);
  });
  onThemeChange(() => {
    colours = null;
    draw();
  });
  new ResizeObserver(fitGrids).observe(grids);

  return {
    id: "access",
    title: "Why faster?",
    panel,
    onResult({ programs, ok }) {
      player.pause();
      ask();
      if (!programs.length) {
        if (!ok) return;
        report = replay = null;
        panel.replaceChildren(nothing);
        return;
      }
      settings.offer(programs, NO_OTHER);
      stale = true;
      if (!panel.hidden) void load(null, null);
    },
    onRestart() {
      player.pause();
    },
    onActivity: update,
    onShow() {
      if (stale) void load(null, null);
      else fitGrids();
    },
  };
}

function section(title: string, ...parts: HTMLElement[]): HTMLElement {
  return element("section", { class: "access-part" }, element("h2", {}, title), ...parts);
}

function legend(): HTMLElement {
  const key = (kind: string, text: string): HTMLElement =>
    element("span", { class: `cell-key cell-${kind}` }, text);
  return element(
    "div",
    { class: "access-legend", "aria-hidden": "true" },
    key("blank", "not yet touched"),
    key("touched", "touched before"),
    key("held", "in the cache"),
    key("hit", "just hit"),
    key("miss", "just missed"),
  );
}

function footnote(): HTMLElement {
  return element(
    "p",
    { class: "access-footnote" },
    "Every access of the program counts, as the interpreter makes it: one element at a time, least recently used line out first. Machine code keeps some elements in registers, and moves several at once.",
  );
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
