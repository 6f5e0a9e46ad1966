/** Times trial by trial, live: each trial, the best so far, and the unscheduled program. */

import { signal } from "@preact/signals-core";
import { html, nothing, svg, type TemplateResult } from "lit-html";
import { timing } from "../format";
import { setting } from "../kit";
import { type Frame, legend, Plot, path, type Scale, timeAxis } from "../plot";
import type { Search } from "./search";
import { type Timed, timed } from "./trials";

export class TimesPanel {
  readonly id = "search-times";
  readonly title = "Times";
  private readonly plot = new Plot(220, "search-chart");
  /** The trial that the mouse is nearest to. */
  private readonly near = signal<Timed | null>(null);

  constructor(private readonly onChoose: (index: number) => void) {}

  template(search: Search | null): TemplateResult {
    if (!search)
      return html`<p class="panel-note">Start a search: each trial is a dot here, at its time.</p>`;
    const trials = timed(search.trials);
    const planned = search.state.value === "ended" ? 0 : (search.planned ?? 0);
    const { baseline } = search;
    const times = [...trials.map(({ seconds }) => seconds), ...(baseline ? [baseline] : [])];
    const last = Math.max(planned - 1, search.trials.at(-1)?.index ?? 0, 1);
    const axes = {
      x: { domain: [0, last] as const, title: "trial", whole: true },
      y: timeAxis(times),
    };
    return html`${legend(["trial", "trial"], ["best", "best so far"], ["base", "unscheduled"])}
      ${this.plot.chart(
        "Time per trial and best so far; the table below has the numbers",
        times.length ? axes : null,
        (x, y, frame) => this.marks(trials, baseline, x, y, frame),
      )}`;
  }

  private marks(trials: Timed[], baseline: number | null, x: Scale, y: Scale, frame: Frame) {
    const { left, right, top, bottom } = frame;
    const points = trials.map(({ index, seconds }) => [x(index), y(seconds)] as const);
    let lowest = 0;
    const best = points.map(([at, height]) => {
      lowest = Math.max(lowest, height);
      return [at, lowest] as const;
    });
    const find = ({ offsetX }: MouseEvent): Timed | null =>
      trials.reduce<Timed | null>((near, trial) => {
        const distance = Math.abs(x(trial.index) - offsetX);
        return near && Math.abs(x(near.index) - offsetX) <= distance ? near : trial;
      }, null);
    const near = this.near.value;
    return svg`
      ${baseline ? svg`<path class="base" d="M${left} ${y(baseline)}H${right}"></path>` : nothing}
      <path class="best" d=${path(best, true)}></path>
      <path class="dots" d=${points.map(([at, height]) => `M${at} ${height}h0`).join("")}></path>
      ${near && trials.includes(near) ? svg`<circle class="ring" r="6" cx=${x(near.index)} cy=${y(near.seconds)}></circle>` : nothing}
      <rect class="target" x=${left} y=${top} width=${right - left} height=${bottom - top}
        @click=${(event: MouseEvent) => {
          const trial = find(event);
          if (trial) this.onChoose(trial.index);
        }}
        @pointermove=${(event: MouseEvent) => {
          this.near.value = find(event);
        }}
        @pointerleave=${setting(this.near, null)}><title>${near ? `Trial ${near.index}: ${timing(near.seconds)}` : ""}</title></rect>`;
  }
}
