/** What the cost model predicted against what was measured, and how well it ranks. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import { dataTable } from "../kit";
import { axes, extent, linear, logarithmic, logTicks, Plot, ticks } from "../plot";
import { ms, type SearchPanel } from "./panel";
import { accuracy, type PredictedTrial, predicted, rounds } from "./ranking";
import type { Search } from "./search";
import type { ShownTrial } from "./trials";

const HEIGHT = 260;

/** More points than these hide each other; they are the latest. */
const MAX_POINTS = 600;

export class ModelPanel implements SearchPanel {
  readonly id = "search-model";
  readonly title = "Model";
  private readonly plot = new Plot(HEIGHT, "search-predictions");

  constructor(private readonly onChoose: (index: number) => void) {}

  template(search: Search | null): TemplateResult {
    const trials = predicted(search?.trials ?? []);
    const { share, pairs } = accuracy(trials);
    const note =
      share !== null
        ? `Of ${pairs} pairs of trials the model put ${percent(share)} in the right order, before they were measured; guessing would give 50 %.`
        : trials.length
          ? "All predicted trials took the same time."
          : "Cost-model predictions start in round 2 of an evolutionary search.";
    const rows = [...rounds(trials)].map(([round, group]) => {
      const own = accuracy(group);
      return [round + 1, group.length, own.pairs, own.share === null ? "–" : percent(own.share)];
    });
    return html`<p class="panel-note" data-testid="search-accuracy"
        data-accuracy=${share?.toFixed(3) ?? nothing}>${note}</p>
      ${this.plot.template(
        "Predicted score against measured time; the table below has the numbers by round",
        trials.length ? (width) => this.draw(trials.slice(-MAX_POINTS), width) : null,
      )}
      <details class="numbers" ?hidden=${!trials.length}><summary>Round by round</summary>${dataTable(
        "Accuracy of the model by round",
        ["Round", "Trials", "Pairs", "Ranked right"],
        rows,
      )}</details>`;
  }

  private draw(points: PredictedTrial<ShownTrial>[], width: number): unknown {
    const frame = { left: 52, right: width - 14, top: 22, bottom: HEIGHT - 38 };
    const scores = extent(points.map(({ score }) => score));
    const times = extent(points.map(({ seconds }) => seconds * 1000));
    const x = linear(scores, [frame.left + 6, frame.right - 6]);
    const y = logarithmic(times, [frame.bottom - 6, frame.top + 6]);
    const last = points.reduce((most, { trial }) => Math.max(most, trial.round), 0);
    const mark = ({ trial, score, seconds }: PredictedTrial<ShownTrial>): unknown =>
      svg`<circle cx=${x(score)} cy=${y(seconds * 1000)} r="4"
        class=${trial.round === last ? "mark latest" : "mark"} @click=${() =>
          this.onChoose(
            trial.index,
          )}><title>${`Trial ${trial.index}: predicted ${score.toPrecision(3)}, took ${ms(seconds)} ms`}</title></circle>`;
    return [
      axes(
        frame,
        {
          scale: x,
          ticks: ticks(scores, width > 500 ? 6 : 3),
          text: String,
          title: "predicted score, larger is faster",
        },
        { scale: y, ticks: logTicks(times), text: (value) => ms(value / 1000), title: "time, ms" },
      ),
      points.map(mark),
    ];
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
