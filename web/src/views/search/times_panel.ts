/** Times trial by trial, live: the chart and what its marks mean. */

import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { legend } from "../plot";
import { SearchChart } from "./chart";
import type { SearchPanel } from "./panel";
import type { Search } from "./search";

export class TimesPanel implements SearchPanel {
  readonly id = "search-times";
  readonly title = "Times";
  private readonly chart: SearchChart;

  constructor(onChoose: (index: number) => void) {
    this.chart = new SearchChart(onChoose);
  }

  template(search: Search | null): TemplateResult {
    const trials = search?.trials ?? [];
    const planned = search?.state === "ended" ? trials.length : (search?.planned ?? trials.length);
    const draw = (host: Element | undefined): void => {
      if (host) this.chart.show(host as HTMLElement, trials, planned, search?.baseline ?? null);
    };
    return html`${legend(["trial", "trial"], ["best", "best so far"], ["base", "unscheduled"])}
      <div class="chart" data-testid="search-chart" role="img" ${ref(draw)}
        aria-label="Time per trial and best so far; the table below has the numbers"></div>`;
  }
}
