/** The search chart: time of each trial, the best so far, and the unscheduled program. */

import "../../language";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onThemeChange } from "../../theme";
import { themeColour } from "../plot";
import { logRange } from "./scale";
import type { Trial } from "./trials";

const HEIGHT = 220;

export class SearchChart {
  private plot: uPlot | null = null;
  private host: HTMLElement | null = null;
  private trials: Trial[] = [];
  private baseline: number | null = null;
  private planned = 1;
  private readonly resize = new ResizeObserver(() => this.fit());

  constructor(private readonly onPick: (index: number) => void) {
    onThemeChange(() => this.renew());
  }

  /** Draw in `host` the trials measured so far out of `planned`; `baseline` in seconds. */
  show(host: HTMLElement, trials: Trial[], planned: number, baseline: number | null): void {
    this.trials = trials;
    this.planned = planned;
    this.baseline = baseline;
    if (host === this.host) this.draw();
    else {
      this.resize.disconnect();
      this.host = host;
      this.resize.observe(host);
      this.renew();
    }
  }

  private renew(): void {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  private draw(): void {
    if (!this.host?.clientWidth) return;
    this.plot ??= this.create(this.host);
    this.plot.setData(this.data());
  }

  /** Trial numbers, times, best so far, baseline; times in milliseconds, gaps for failed trials. */
  private data(): uPlot.AlignedData {
    const xs: number[] = [];
    const times: (number | null)[] = [];
    const bests: (number | null)[] = [];
    let best: number | null = null;
    for (const { index, seconds } of this.trials) {
      if (seconds !== null) best = Math.min(best ?? Infinity, seconds);
      xs.push(index);
      times.push(seconds === null ? null : seconds * 1000);
      bests.push(best === null ? null : best * 1000);
    }
    const baseline = xs.map(() => (this.baseline === null ? null : this.baseline * 1000));
    return [xs, times, bests, baseline];
  }

  private create(host: HTMLElement): uPlot {
    const ink = themeColour(host, "--ink-soft");
    const grid = themeColour(host, "--line");
    const font = `12px ${getComputedStyle(host).getPropertyValue("--sans").trim() || "sans-serif"}`;
    const axis = {
      stroke: ink,
      font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 4 },
    };
    const options: uPlot.Options = {
      width: host.clientWidth,
      height: HEIGHT,
      padding: [12, 14, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 9 }, drag: { x: false, y: false }, y: false },
      scales: {
        x: {
          time: false,
          range: () => [-0.5, Math.max(this.planned, this.trials.length, 2) - 0.5],
        },
        y: { distr: 3, range: (_plot, low, high) => logRange(low, high) },
      },
      axes: [
        {
          ...axis,
          label: "trial",
          labelSize: 18,
          labelFont: font,
          size: 30,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        },
        {
          ...axis,
          label: "time, ms",
          labelSize: 18,
          labelFont: font,
          size: 48,
          values: (_plot, ticks) =>
            ticks.map((tick) => (tick === null ? "" : String(Number(tick.toPrecision(2))))),
        },
      ],
      series: [
        {},
        {
          label: "trial",
          stroke: themeColour(host, "--accent"),
          paths: () => null,
          points: { show: true, size: 7, fill: themeColour(host, "--accent") },
        },
        {
          label: "best so far",
          stroke: themeColour(host, "--amber"),
          width: 2,
          paths: stepped,
          points: { show: false },
        },
        { label: "unscheduled", stroke: ink, width: 1, dash: [4, 4], points: { show: false } },
      ],
    };
    const plot = new uPlot(options, this.data(), host);
    plot.over.addEventListener("click", () => {
      const index = plot.cursor.idx;
      if (typeof index === "number") this.onPick(this.trials[index]!.index);
    });
    return plot;
  }

  private fit(): void {
    const width = this.host?.clientWidth;
    if (!width) return;
    if (this.plot) this.plot.setSize({ width, height: HEIGHT });
    else if (this.trials.length) this.draw();
  }
}

const stepped = uPlot.paths.stepped!({ align: 1 });
