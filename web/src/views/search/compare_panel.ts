/** Two searches beside each other: the best so far by trials and by time. */

import { signal } from "@preact/signals-core";
import { html, nothing, svg, type TemplateResult } from "lit-html";
import { short, timing } from "../format";
import { choice, dataTable } from "../kit";
import { Plot, path, timeAxis } from "../plot";
import { type By, bestAt, reached, runningBest } from "./curves";
import type { Search } from "./search";

/** A search is as good as another at this much more time. */
const NEAR = 1.05;

export class ComparePanel {
  readonly id = "search-compare";
  readonly title = "Compare";
  private readonly plot = new Plot(260, "search-curves");
  private readonly by = signal<By>("trials");
  /** What the reader has chosen: the numbers of two searches of `of`, which was the newest. */
  private readonly chosen = signal<{ of: number; pair: [number, number] } | null>(null);

  template(_search: Search | null, all: readonly Search[]): TemplateResult {
    const pair = this.pair(all);
    const by = this.by.value;
    const curves = pair.map(({ trials }) => runningBest(trials, by));
    const points = curves.flat();
    const field = (label: string, which: 0 | 1): TemplateResult =>
      choice({
        label,
        id: `search-${label.toLowerCase()}`,
        options: all.map(({ number, name }) => ({ id: String(number), title: name })),
        value: String(pair[which]?.number ?? ""),
        hidden: false,
        onChange: (id) => {
          const numbers = pair.map(({ number }) => number) as [number, number];
          numbers[which] = Number(id);
          this.chosen.value = { of: all.at(-1)!.number, pair: numbers };
        },
      });
    const ends = points.map(({ x }) => x);
    const axes = {
      x: { domain: [0, Math.max(...ends)] as const, title: by },
      y: timeAxis(
        points.map(({ seconds }) => seconds),
        "best so far",
      ),
    };
    const enough = all.length > 1;
    return html`<div class="panel-form">
        ${field("First", 0)}${field("Second", 1)}
        ${choice({ label: "By", id: "search-by", options: ["trials", "seconds"], value: this.by })}
      </div>
      <p class="panel-note">${
        enough
          ? "The best so far of both searches, as measured while they ran."
          : "After two searches, you can compare them here. They last until the page is closed."
      }</p>
      ${this.plot.chart(
        "The best so far of two searches; the table below has the numbers",
        enough && points.length ? axes : null,
        (x, y) =>
          curves.map((curve, at) => {
            const line = curve.map((step) => [x(step.x), y(step.seconds)] as const);
            return svg`<path d=${path(line, true)} class="curve curve-${at}"></path>`;
          }),
      )}
      ${enough ? this.comparison(pair, curves) : nothing}`;
  }

  private comparison(pair: Search[], curves: ReturnType<typeof runningBest>[]): TemplateResult {
    const by = this.by.value;
    const near = Math.min(...curves.map((curve) => curve.at(-1)?.seconds ?? Infinity)) * NEAR;
    const shared = Math.min(...curves.map((curve) => curve.at(-1)?.x ?? 0));
    const text = (value: number | null | undefined, format: (value: number) => string): string =>
      value === null || value === undefined ? "–" : format(value);
    const unit = by === "trials" ? "trials" : "s";
    return dataTable(
      "The best of both searches",
      ["", ...pair.map(({ name }, at) => html`<span class="key curve-${at}">${name}</span>`)],
      [
        ["Best", ...curves.map((curve) => text(curve.at(-1)?.seconds, timing))],
        [
          `Best after ${short(shared)} ${unit}, ms`,
          ...curves.map((curve) => text(bestAt(curve, shared), timing)),
        ],
        [
          `${by === "trials" ? "Trials" : "Seconds"} to within 5 % of the better`,
          ...curves.map((curve) => text(reached(curve, near), short)),
        ],
      ],
      { testId: "search-comparison" },
    );
  }

  /** The searches compared: the newest with the one before it, until others are chosen. */
  private pair(all: readonly Search[]): Search[] {
    const newest = all.at(-1);
    if (!newest) return [];
    const chosen = this.chosen.value;
    const numbered = (number: number | undefined): Search | undefined =>
      all.find((search) => search.number === number);
    const first = numbered(chosen?.pair[0]) ?? all.at(-2) ?? newest;
    const second = chosen?.of === newest.number ? numbered(chosen.pair[1]) : newest;
    return [first, second ?? newest];
  }
}
