/** Why is it faster? The accesses of a program, played; what a cache makes of them; and words. */

import { computed, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { element } from "../../dom";
import {
  type AccessReport,
  type AccessResult,
  type CacheSettings,
  FIRST_CACHE,
} from "../../python/wire";
import { appliedTheme } from "../../theme";
import { Measurement } from "../code/measurement";
import { folded, measuredWidth, perFrame, reactive } from "../kit";
import { legend } from "../plot";
import { ProgramReport, part, sentences } from "../program_report";
import { Resource } from "../resource";
import type { View, ViewContext } from "../view";
import "./access.css";
import { bufferGrid, palette } from "./grid";
import { badgedListing } from "./listing";
import { calm, Player } from "./player";
import { Replay } from "./replay";
import { accessesOf, hitsOf } from "./report";
import { cacheSettings, sizeChoice } from "./settings";
import { accessTable, cacheTable } from "./tables";

/** Between grids, in pixels; style sheets have it as a space. */
const GAP = 14;

export function accessView(context: ViewContext): View {
  const { session } = context;
  const compared = new ProgramReport<AccessReport>("access", "Why faster?", context, {
    what: "Recording accesses",
    explain: (signal, ...asked) => {
      player.pause();
      const most = size.value === "" ? null : Number(size.value);
      return session.look(signal, "access_view.explain", ...asked, most, cache.value);
    },
    take: (answer) => {
      measurement.reset();
      result.set(answer.result);
      player.jump(0);
    },
    loaded: () => {
      if (!calm.value) player.start();
    },
  });
  const { panel, report, asked } = compared;
  const size = signal("");
  const cache = signal<CacheSettings>(FIRST_CACHE);
  /** Of the cache; that of the report, until another cache is chosen. */
  const result = new Resource<AccessResult>();
  const aroundOpen = signal(false);

  const accesses = computed(() => report.value && accessesOf(report.value));
  const replay = computed(() => {
    if (!report.value || !accesses.value || !result.value) return null;
    const { buffers, sites } = report.value;
    return new Replay(buffers, sites, accesses.value, hitsOf(result.value), cache.peek().line);
  });
  const player = new Player(replay, panel);
  const position = perFrame(player.position);

  const frames = computed(() => replay.value?.frames() ?? []);
  const colours = computed(() => {
    void appliedTheme.value;
    return palette(panel);
  });
  /** The grids with the same width for each, as many beside each other as the view is wide. */
  const room = measuredWidth();
  const gridBox = reactive(element("div"), () => {
    drawn();
    const { length } = frames.value;
    const beside = Math.max(1, Math.min(length, Math.floor(room.width.value / 112)));
    const width = Math.floor((room.width.value - GAP * (beside - 1)) / beside);
    const moving = player.playing.value;
    return html`<div class="buffer-grids" ${room.host}>${frames.value.map((frame, index) =>
      bufferGrid(replay.value!, index, frame, {
        width,
        colours: colours.value,
        fading: !calm.value,
        moving,
      }),
    )}</div>`;
  });
  /** What changes with every access. */
  const controls = reactive(
    element("div"),
    () => html`${player.template()}
      <p class="access-caption" data-testid="access-caption"
        aria-live=${player.playing.value ? "off" : "polite"}>${player.sentence.value}</p>`,
  );
  const listing = reactive(element("div"), () => {
    const at = drawn();
    const now = replay.value;
    const site = now && at ? now.sites[now.accesses.site[at - 1]!] : null;
    return report.value ? badgedListing(report.value, site?.line ?? null) : nothing;
  });
  const around = reactive(element("div"), () => {
    drawn();
    return aroundOpen.value && !player.playing.value && replay.value
      ? accessTable(replay.value)
      : nothing;
  });
  const measurement = new Measurement(
    context,
    { card: "access-roofline", button: "access-measure" },
    () => {
      if (!report.value || !result.value) return null;
      const { operations } = report.value;
      const { bytes } = result.value.total;
      return {
        program: asked.value.program,
        function: report.value.function,
        fused: null,
        simulated: operations && bytes ? operations / bytes : null,
      };
    },
  );

  /** Ask for another cache, and begin anew. */
  async function simulate(settings: CacheSettings): Promise<void> {
    cache.value = settings;
    const now = report.value;
    if (!now) return;
    player.pause();
    const args = [asked.value.program, now.function, now.other, now.size.most] as const;
    await result.load(
      (signal) => session.look(signal, "access_view.simulate", ...args, settings),
      () => player.jump(0),
    );
  }

  const settings = (): TemplateResult => {
    const { value } = compared.programs;
    const others = value.filter(({ id }) => id !== asked.value.program);
    const sizes = sizeChoice(size, () => compared.ask());
    return compared.settings(others, true, sizes);
  };
  const content = (now: AccessReport): unknown => {
    const seen = result.value;
    if (!seen) return nothing;
    const table = cacheTable(now, seen, compared.otherTitle);
    return html`<p class="access-note" role="status" data-testid="access-note">${
      result.stopped ? now.size.note : result.error || now.size.note
    }</p>
      ${sentences(seen, "access-sentences")}
      ${part(
        "Access animation",
        html`<div class="access-stage" tabindex="0" role="group" data-testid="access-stage"
            aria-label="Access animation: arrow keys step, Space plays"
            @keydown=${player.onKey}>${gridBox}</div>
          ${controls}${CELLS}
          ${folded("The accesses around it, as a table", around, aroundOpen)}`,
      )}
      ${part("The program that ran", listing)}
      ${part(
        "Cache model",
        html`${cacheSettings(cache, (next) => void simulate(next))}
          <div aria-busy=${result.busy ? "true" : nothing}>${table}</div>${FOOTNOTE}`,
      )}
      ${measurement.template()}`;
  };

  /** The position that is drawn, of the run shown. */
  function drawn(): number {
    return Math.min(position.value, replay.value?.count ?? 0);
  }

  return compared.view(
    {
      empty:
        "Run a program that defines a module to see in which order it touches memory, how well a cache serves it, and what a schedule changes.",
      failed: "The accesses cannot be shown",
      stopped: "The recording was stopped.",
    },
    settings,
    content,
    {
      onResult: () => {
        player.pause();
        result.cancel();
      },
      onRestart: () => player.pause(),
    },
  );
}

const CELLS = legend(
  ["cell-blank", "not yet touched"],
  ["cell-touched", "touched before"],
  ["cell-held", "in the cache"],
  ["cell-hit", "just hit"],
  ["cell-miss", "just missed"],
);

const FOOTNOTE = html`<p class="access-footnote">Every access counts, as the interpreter makes
  it: one element at a time; the least recently used line is evicted. Machine code keeps some elements
  in registers and moves several at once.</p>`;
