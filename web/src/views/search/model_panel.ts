/** What the cost model predicted against what was measured, and how well it ranks. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import { percent, timing } from "../format";
import { dataTable, folded } from "../kit";
import { extent, Plot, timeAxis } from "../plot";
import { type Accuracy, accuracy, predicted, rounds } from "./ranking";
import type { Search } from "./search";

/** More points than these hide each other; they are the latest. */
const MAX_POINTS = 600;

export class ModelPanel {
  readonly id = "search-model";
  readonly title = "Model";
  private readonly plot = new Plot(260, "search-predictions");

  constructor(private readonly onChoose: (index: number) => void) {}

  template(search: Search | null): TemplateResult {
    const trials = predicted(search?.trials ?? []);
    const all = accuracy(trials);
    const { share, pairs } = all;
    const note =
      share !== null
        ? `Of ${pairs} pairs of trials the model put ${ofPairs(all)} in the right order, before they were measured; guessing would give 50 %.`
        : trials.length
          ? "All predicted trials took the same time."
          : "Cost-model predictions start in round 2 of an evolutionary search.";
    const rows = [...rounds(trials)].map(([round, group]) => {
      const own = accuracy(group);
      return [round + 1, group.length, own.pairs, ofPairs(own)];
    });
    const table = dataTable(
      "Accuracy of the model by round",
      ["Round", "Trials", "Pairs", "Ranked right"],
      rows,
    );
    const points = trials.slice(-MAX_POINTS);
    const scores = points.map((point) => point.predicted);
    const last = Math.max(...points.map(({ round }) => round));
    const axes = {
      x: { domain: extent(scores), title: "predicted score, larger is faster" },
      y: timeAxis(points.map(({ seconds }) => seconds)),
    };
    return html`<p class="panel-note" data-testid="search-accuracy">${note}</p>
      ${this.plot.chart(
        "Predicted score against measured time; the table below has the numbers by round",
        points.length ? axes : null,
        (x, y) =>
          points.map(
            ({ index, round, predicted: score, seconds }) => svg`<circle cx=${x(score)}
              cy=${y(seconds)} r="4" class=${round === last ? "mark latest" : "mark"}
              @click=${() => this.onChoose(index)}><title>${`Trial ${index}: predicted ${score.toPrecision(3)}, took ${timing(seconds)}`}</title></circle>`,
          ),
      )}
      ${trials.length ? folded("Round by round", table) : nothing}`;
  }
}

function ofPairs({ share, pairs }: Accuracy): string {
  return percent(Math.round((share ?? 0) * pairs), pairs);
}
