/** GPU: what a GPU does with a program whose loops are bound to threads, seen without one. */

import { batch, computed, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import type {
  GpuKernel,
  GpuLanes,
  GpuOccupancy,
  GpuReport,
  GpuSite,
  RunResult,
} from "../../python/wire";
import {
  button,
  type Choice,
  choice,
  emptyNote,
  fieldValue,
  markBusy,
  Pending,
  reactive,
  viewPanel,
} from "../kit";
import { Plot } from "../plot";
import { Resource } from "../resource";
import type { View, ViewContext } from "../view";
import { fetchPicture } from "./fetch";
import "./gpu.css";
import { lanePicture } from "./lanes";
import { launchPicture } from "./launch";
import { occupancyTable, rooflineOf } from "./occupancy";
import { phaseLine } from "./phases";
import { accessTable } from "./table";

/** What is compared with where nothing is. */
const NONE = "none";

/** What the reader has chosen; null where Python is to choose. */
interface Asked {
  program: string;
  function: string | null;
  other: string | null;
}

export function gpuView({ session, looking }: ViewContext): View {
  const panel = viewPanel("gpu", "GPU");
  const programs = signal<RunResult["programs"]>([]);
  const asked = signal<Asked>({ program: "", function: null, other: null });
  const report = new Resource<GpuReport>();
  const lanes = new Resource<GpuLanes>();
  const occupancy = new Resource<GpuOccupancy>();
  const kernel = signal(0);
  const site = signal(0);
  const warp = signal(0);
  const tag = signal("");
  /** Of a thread; empty for the estimate. */
  const registers = signal("");
  const roofline = new Plot(240, "gpu-roofline");

  const shown = computed((): GpuKernel | null => report.value?.kernels[kernel.value] ?? null);
  const access = computed((): GpuSite | null => shown.value?.sites[site.value] ?? null);
  const pending = new Pending(panel, () => void load());

  async function load(): Promise<void> {
    const { program, function: name, other } = asked.value;
    const compared = other === null ? "" : other === NONE ? null : other;
    const loaded = await report.load(
      (signal) =>
        looking(
          "Looking at kernels",
          () => void session.stop(),
          () => session.look(signal, "gpu_view.explain", program, name, compared),
        ),
      (answer) => {
        asked.value = { program, function: answer.function, other: answer.other ?? NONE };
        tag.value ||= answer.tag;
        choose(0);
      },
    );
    if (loaded && shown.value) await Promise.all([loadLanes(), loadOccupancy()]);
  }

  /** Show another kernel, at the access that costs most. */
  function choose(index: number): void {
    batch(() => {
      kernel.value = index;
      site.value = dearest(shown.value?.sites ?? []);
      warp.value = 0;
      registers.value = "";
      lanes.set(null);
      occupancy.set(null);
    });
  }

  async function loadLanes(): Promise<void> {
    const args = [asked.value.program, report.value!.function, kernel.value] as const;
    await lanes.load((signal) =>
      session.look(signal, "gpu_view.lanes", ...args, site.value, warp.value),
    );
  }

  async function loadOccupancy(): Promise<void> {
    const args = [asked.value.program, report.value!.function, kernel.value] as const;
    const used = registers.value ? Number(registers.value) : null;
    await occupancy.load((signal) =>
      session.look(signal, "gpu_view.occupancy", ...args, tag.value, used),
    );
  }

  function pick(next: { site?: number; warp?: number }): void {
    batch(() => {
      site.value = next.site ?? site.value;
      warp.value = next.warp ?? warp.value;
    });
    void loadLanes();
  }

  const settings = (): TemplateResult => {
    const { program, function: name, other } = asked.value;
    const ask = (change: Partial<Asked>): void => {
      asked.value = { ...asked.value, ...change };
      pending.ask();
    };
    const now = report.value;
    const field = (of: Omit<Choice, "id">, id: string): TemplateResult =>
      choice({ ...of, id: `gpu-${id}` });
    const others = programs.value.filter(({ id }) => now?.others.includes(id));
    const steps = now?.steps ?? [];
    return html`<div class="gpu-head">
      ${field(
        {
          label: "Module",
          options: programs.value,
          value: program,
          onChange: (id) => ask({ program: id, function: null, other: null }),
          hidden: false,
        },
        "program",
      )}
      ${field(
        {
          label: "Function",
          options: now?.functions ?? [],
          value: name ?? "",
          onChange: (id) => ask({ function: id }),
        },
        "function",
      )}
      ${field(
        {
          label: "Compare with",
          options: [{ id: NONE, title: "none" }, ...others],
          group: steps.length ? { label: "Its schedule", options: steps } : null,
          value: other ?? NONE,
          onChange: (id) => ask({ other: id }),
          hidden: !others.length && !steps.length,
        },
        "other",
      )}
      ${field(
        {
          label: "Kernel",
          options: (now?.kernels ?? []).map((each, index) => ({
            id: String(index),
            title: each.name,
          })),
          value: String(kernel.value),
          onChange: (id) => {
            choose(Number(id));
            void Promise.all([loadLanes(), loadOccupancy()]);
          },
        },
        "kernel",
      )}
    </div>`;
  };

  const warpChoice = (of: GpuKernel): TemplateResult =>
    choice({
      label: "Warp",
      id: "gpu-warp",
      options: Array.from({ length: of.warps }, (_, index) => String(index)),
      value: String(warp.value),
      onChange: (id) => pick({ warp: Number(id) }),
    });

  const lanesPart = (of: GpuKernel): unknown => {
    const now = access.value;
    if (!now)
      return html`<p class="gpu-note">This kernel touches no memory that threads share.</p>`;
    return html`<div class="gpu-fields">${warpChoice(of)}
        <p class="gpu-chosen"><code>${now.text}</code>, element <code>${now.index}</code></p></div>
      ${now.note ? html`<p class="gpu-note">${now.note}</p>` : nothing}
      ${
        lanes.error
          ? html`<p class="gpu-note" role="alert">${lanes.error}</p>`
          : lanes.value
            ? lanePicture(now, lanes.value)
            : nothing
      }`;
  };

  const hardware = (of: GpuKernel): TemplateResult => html`<div class="gpu-fields">
      ${choice({
        label: "GPU",
        id: "gpu-tag",
        options: (report.value?.tags ?? []).map((id) => ({ id, title: id.split("/").at(-1)! })),
        value: tag,
        onChange: () => void loadOccupancy(),
      })}
      <label class="field" for="gpu-registers">Registers of a thread<input id="gpu-registers"
        data-testid="gpu-registers" type="number" min="16" max="255" step="8"
        .value=${registers.value} placeholder="about ${of.registers}"
        @change=${(event: Event) => {
          registers.value = fieldValue(event);
          void loadOccupancy();
        }}></label></div>
    ${
      occupancy.error
        ? html`<p class="gpu-note" role="alert">${occupancy.error}</p>`
        : occupancy.value
          ? html`<p class="gpu-sentence" data-testid="gpu-occupancy" role="status">${occupancy.value.sentence}</p>
            ${occupancyTable(of, occupancy.value)}${rooflineOf(roofline, of, occupancy.value)}`
          : nothing
    }`;

  const content = (now: GpuReport, of: GpuKernel): TemplateResult => html`<div class="gpu-view"
    data-testid="gpu-view">${settings()}
    ${section(
      now.other ? "What changes" : "What it does",
      html`<ul class="gpu-sentences" data-testid="gpu-sentences">${now.sentences.map(
        (text) => html`<li>${text}</li>`,
      )}</ul>`,
    )}
    ${section("Grid, block, warp", launchPicture(of))}
    ${section(
      "Accesses",
      accessTable(of.sites, site.value, (index) => pick({ site: index })),
      html`<p class="gpu-note">Counted from the program, for all threads of a launch. A compiler may
        keep values in registers instead of loading them again, and caches may hold lines.</p>`,
    )}
    ${section("One access of a warp", lanesPart(of))}
    ${of.fetches.length ? section("Fetched together", ...of.fetches.map((each) => fetchPicture(each, of))) : nothing}
    ${section("Phases", phaseLine(of))}
    ${section("On a GPU", hardware(of))}
  </div>`;

  const failed = (title: string, text: string): TemplateResult => html`<div class="gpu-view"
    data-testid="gpu-view">${settings()}${emptyNote(title, text)}
    ${report.error ? html`<p class="gpu-again">${button("Look again", () => pending.ask())}</p>` : nothing}
  </div>`;

  reactive(
    panel,
    () => {
      const now = report.value;
      if (report.error)
        return report.stopped
          ? failed("Stopped", "This was stopped.")
          : failed("The kernels cannot be shown", report.error);
      if (!now)
        return emptyNote(
          "Nothing to look at yet",
          "Run a program whose schedule binds loops to blockIdx and threadIdx to see what a GPU does with it. No GPU is needed.",
        );
      return shown.value ? content(now, shown.value) : failed("No threads", now.problem);
    },
    () => markBusy(panel, report.busy),
  );

  return {
    id: "gpu",
    title: "GPU",
    panel,
    onResult({ programs: defined, ok }) {
      report.cancel();
      if (defined.length) {
        programs.value = defined;
        asked.value = { program: defined.at(-1)!.id, function: null, other: null };
        pending.ask();
      } else if (ok) {
        pending.drop();
        report.set(null);
      }
    },
    onShow: () => pending.look(),
  };
}

/** The access that wastes most; of those that waste nothing, the one that moves most. */
export function dearest(sites: readonly GpuSite[]): number {
  const costs = sites.map(({ cost }) =>
    cost ? [cost.sectors + cost.passes - cost.ideal, cost.sectors] : [-1, -1],
  );
  let best = 0;
  costs.forEach(([waste, moved], index) => {
    const [most, largest] = costs[best]!;
    if (waste! > most! || (waste === most && moved! > largest!)) best = index;
  });
  return best;
}

function section(title: string, ...parts: unknown[]): TemplateResult {
  return html`<section class="gpu-part"><h2>${title}</h2>${parts}</section>`;
}
