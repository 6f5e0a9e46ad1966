/** GPU: what a GPU does with a program whose loops are bound to threads, seen without one. */

import { batch, computed, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import type { GpuKernel, GpuLanes, GpuOccupancy, GpuReport, GpuSite } from "../../python/wire";
import { choice, emptyNote, fieldValue } from "../kit";
import { Plot } from "../plot";
import { ProgramReport, part, sentences } from "../program_report";
import { Resource } from "../resource";
import type { View, ViewContext } from "../view";
import { fetchPicture } from "./fetch";
import "./gpu.css";
import { lanePicture } from "./lanes";
import { launchPicture } from "./launch";
import { occupancyTable, rooflineOf } from "./occupancy";
import { phaseLine } from "./phases";
import { accessTable } from "./table";

export function gpuView(context: ViewContext): View {
  const { session } = context;
  const compared = new ProgramReport<GpuReport>("gpu", "GPU", context, {
    what: "Looking at kernels",
    explain: (signal, ...asked) => session.look(signal, "gpu_view.explain", ...asked),
    take: (answer) => {
      tag.value ||= answer.tag;
      choose(0);
    },
  });
  const { report, asked } = compared;
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
  /** The kernel shown, as Python knows it. */
  const shownKernel = computed(() => {
    const { function: name } = report.value ?? {};
    return name && shown.value ? ([asked.peek().program, name, kernel.value] as const) : null;
  });
  lanes.follow(() => {
    const [of, at, by] = [shownKernel.value, site.value, warp.value];
    return of && ((signal) => session.look(signal, "gpu_view.lanes", ...of, at, by));
  });
  occupancy.follow(() => {
    const [of, gpu] = [shownKernel.value, tag.value];
    const used = registers.value ? Number(registers.value) : null;
    return of && ((signal) => session.look(signal, "gpu_view.occupancy", ...of, gpu, used));
  });

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

  const settings = (): TemplateResult => {
    const { others = [], kernels = [] } = report.value ?? {};
    const programs = compared.programs.value.filter(({ id }) => others.includes(id));
    const kernelChoice = choice({
      label: "Kernel",
      id: "gpu-kernel",
      options: kernels.map(({ name }, index) => ({ id: String(index), title: name })),
      value: String(kernel.value),
      onChange: (id) => choose(Number(id)),
    });
    return compared.settings(programs, false, kernelChoice);
  };

  const warpChoice = (of: GpuKernel): TemplateResult =>
    choice({
      label: "Warp",
      id: "gpu-warp",
      options: Array.from({ length: of.warps }, (_, index) => String(index)),
      value: String(warp.value),
      onChange: (id) => {
        warp.value = Number(id);
      },
    });

  const lanesPart = (of: GpuKernel): unknown => {
    const now = access.value;
    if (!now)
      return html`<p class="gpu-note">This kernel touches no memory that threads share.</p>`;
    return html`<div class="gpu-fields">${warpChoice(of)}
        <p class="gpu-chosen"><code>${now.text}</code>, element <code>${now.index}</code></p></div>
      ${now.note ? html`<p class="gpu-note">${now.note}</p>` : nothing}
      ${answered(lanes, (value) => lanePicture(now, value))}`;
  };

  const hardware = (of: GpuKernel): TemplateResult => html`<div class="gpu-fields">
      ${choice({
        label: "GPU",
        id: "gpu-tag",
        options: (report.value?.tags ?? []).map((id) => ({ id, title: id.split("/").at(-1)! })),
        value: tag,
      })}
      <label class="field" for="gpu-registers">Registers of a thread<input id="gpu-registers"
        data-testid="gpu-registers" type="number" min="16" max="255" step="8"
        .value=${registers.value} placeholder="about ${of.registers}"
        @change=${(event: Event) => {
          registers.value = fieldValue(event);
        }}></label></div>
    ${answered(
      occupancy,
      (
        value,
      ) => html`<p class="gpu-sentence" data-testid="gpu-occupancy" role="status">${value.sentence}</p>
        ${occupancyTable(of, value)}${rooflineOf(roofline, of, value)}`,
    )}`;

  const content = (now: GpuReport): unknown => {
    const of = shown.value;
    if (!of) return emptyNote("No threads", now.problem);
    return [
      sentences(now, "gpu-sentences"),
      part("Grid, block, warp", launchPicture(of)),
      part(
        "Accesses",
        accessTable(of.sites, site),
        html`<p class="gpu-note">Counted from the program, for all threads of a launch. A compiler may
          keep values in registers instead of loading them again, and caches may hold lines.</p>`,
      ),
      part("One access of a warp", lanesPart(of)),
      of.fetches.length
        ? part("Fetched together", ...of.fetches.map((each) => fetchPicture(each, of)))
        : nothing,
      part("Phases", phaseLine(of)),
      part("On a GPU", hardware(of)),
    ];
  };

  return compared.view(
    {
      empty:
        "Run a program whose schedule binds loops to blockIdx and threadIdx to see what a GPU does with it. No GPU is needed.",
      failed: "The kernels cannot be shown",
      stopped: "This was stopped.",
    },
    settings,
    content,
  );
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

/** The answer of a resource, or why there is none. */
function answered<T>({ error, value }: Resource<T>, show: (value: T) => unknown): unknown {
  return error ? html`<p class="gpu-note" role="alert">${error}</p>` : value && show(value);
}
