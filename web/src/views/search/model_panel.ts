/** What the cost model predicted against what was measured, and how well it ranks. */

import { element } from "../../dom";
import { axes, Drawing, extent, linear, logarithmic, logTicks, svg, ticks } from "../plot";
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
  readonly root: HTMLElement;
  private readonly note = element("p", { class: "panel-note", "data-testid": "search-accuracy" });
  private readonly picture = element("div", {
    class: "plot",
    role: "img",
    "aria-label": "Predicted score against measured time; the table below has the numbers by round",
    "data-testid": "search-predictions",
  });
  private readonly body = element("tbody");
  private readonly numbers: HTMLElement;
  private readonly drawing: Drawing;
  private found: PredictedTrial<ShownTrial>[] = [];

  constructor(private readonly onChoose: (index: number) => void) {
    this.drawing = new Drawing(this.picture, HEIGHT, (width) => this.draw(width));
    const head = ["Round", "Trials", "Pairs", "Ranked right"];
    this.numbers = element(
      "details",
      { class: "numbers" },
      element("summary", {}, "Round by round"),
      element(
        "div",
        { class: "table-box" },
        element(
          "table",
          { class: "trials" },
          element("caption", { class: "visually-hidden" }, "Accuracy of the model by round"),
          element(
            "thead",
            {},
            element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name))),
          ),
          this.body,
        ),
      ),
    );
    this.root = element("div", { class: "search-panel" }, this.note, this.picture, this.numbers);
  }

  show(search: Search | null): void {
    this.found = predicted(search?.trials ?? []);
    const { share, pairs } = accuracy(this.found);
    this.note.textContent = this.found.length
      ? share === null
        ? "The trials that were predicted take equally long."
        : `Of ${pairs} pairs of trials the model put ${percent(share)} in the right order, before they were measured; by chance it were 50 %.`
      : "A model predicts from the second round of an evolutionary search on.";
    if (share === null) delete this.note.dataset.accuracy;
    else this.note.dataset.accuracy = share.toFixed(3);
    this.picture.classList.toggle("blank", this.found.length === 0);
    this.numbers.hidden = this.found.length === 0;
    this.drawing.update();
    this.body.replaceChildren(
      ...[...rounds(this.found)].map(([round, group]) => {
        const own = accuracy(group);
        const cells = [
          String(round + 1),
          String(group.length),
          String(own.pairs),
          own.share === null ? "–" : percent(own.share),
        ];
        return element("tr", {}, ...cells.map((text) => element("td", { class: "number" }, text)));
      }),
    );
  }

  private draw(width: number): (Node | string)[] {
    const points = this.found.slice(-MAX_POINTS);
    if (!points.length) return [];
    const frame = { left: 52, right: width - 14, top: 22, bottom: HEIGHT - 38 };
    const scores = extent(points.map(({ score }) => score));
    const times = extent(points.map(({ seconds }) => seconds * 1000));
    const x = linear(scores, [frame.left + 6, frame.right - 6]);
    const y = logarithmic(times, [frame.bottom - 6, frame.top + 6]);
    const last = points.reduce((most, { trial }) => Math.max(most, trial.round), 0);
    const marks = points.map(({ trial, score, seconds }) => {
      const mark = svg(
        "circle",
        {
          cx: x(score),
          cy: y(seconds * 1000),
          r: 4,
          class: trial.round === last ? "mark latest" : "mark",
        },
        svg(
          "title",
          {},
          `Trial ${trial.index}: predicted ${score.toPrecision(3)}, took ${ms(seconds)} ms`,
        ),
      );
      mark.addEventListener("click", () => this.onChoose(trial.index));
      return mark;
    });
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
      ...marks,
    ];
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
