/** Times trial by trial, live: the chart and what its marks mean. */

import { element } from "../../dom";
import { SearchChart } from "./chart";
import type { SearchPanel } from "./panel";
import type { Search } from "./search";

export class TimesPanel implements SearchPanel {
  readonly id = "search-times";
  readonly title = "Times";
  readonly root: HTMLElement;
  private readonly chart: SearchChart;

  constructor(onChoose: (index: number) => void) {
    const box = element("div", {
      class: "chart",
      "data-testid": "search-chart",
      role: "img",
      "aria-label": "Time per trial and best so far; the table below has the numbers",
    });
    this.chart = new SearchChart(box, onChoose);
    const key = (kind: string, text: string): HTMLElement =>
      element("span", { class: `key ${kind}` }, text);
    this.root = element(
      "div",
      { class: "search-panel" },
      element(
        "div",
        { class: "legend", "aria-hidden": "true" },
        key("trial", "trial"),
        key("best", "best so far"),
        key("base", "unscheduled"),
      ),
      box,
    );
  }

  show(search: Search | null): void {
    const trials = search?.trials ?? [];
    const planned = search?.state === "ended" ? trials.length : (search?.planned ?? trials.length);
    this.chart.show(trials, planned, search?.baseline ?? null);
  }
}
