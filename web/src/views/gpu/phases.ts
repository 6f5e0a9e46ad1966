/** What the threads of a block do between barriers, in order. */

import { html, nothing, type TemplateResult } from "lit-html";
import type { GpuKernel, GpuStep } from "../../python/wire";
import { whole } from "../format";
import { costText, VERBS } from "./table";

export function phaseLine(kernel: GpuKernel): TemplateResult {
  const barriers = kernel.steps.filter(({ kind }) => kind === "barrier");
  const waits = barriers.reduce((sum, { times }) => sum + times, 0);
  return html`<p class="gpu-sentence">${
    waits
      ? `The threads of a block wait for each other ${waits === 1 ? "once" : `${whole(waits)} times`}.`
      : "No thread waits for another one: there is no barrier."
  }</p>
  <ol class="gpu-steps" data-testid="gpu-steps">${kernel.steps.map(
    (step) =>
      html`<li class="gpu-step is-${step.kind}" style="--depth: ${step.depth}">${content(
        step,
        kernel,
      )}</li>`,
  )}</ol>`;
}

function content(step: GpuStep, kernel: GpuKernel): unknown {
  if (step.kind === "loop") return html`<span>loop ${step.loop}</span>`;
  const times =
    step.times > 1 ? html`<span class="gpu-times">× ${whole(step.times)}</span>` : nothing;
  if (step.kind === "barrier") return html`<span>barrier</span>${times}`;
  return html`<ul>${step.sites.map((number) => {
    const site = kernel.sites[number]!;
    return html`<li>${VERBS[site.kind]} <code>${site.text}</code> <span class="gpu-times">${costText(site)}</span></li>`;
  })}</ul>${times}`;
}
