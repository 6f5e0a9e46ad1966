/** Two searches beside each other: the best so far by trials and by time. */

import { signal } from "@preact/signals-core";
import { html, nothing, svg, type TemplateResult } from "lit-html";
import { choice } from "../kit";
import { axes, extent, linear, logarithmic, logTicks, Plot, ticks } from "../plot";
import { type By, bestAt, reached, runningBest, type Step } from "./curves";
import { ms, type SearchPanel } from "./panel";
import type { Search } from "./search";

const HEIGHT = 260;

/** A search is as good as another at this much more time. */
const NEAR = 1.05;

export class ComparePanel implements SearchPanel {
  readonly id = "search-compare";
  readonly title = "Compare";
  private readonly plot = new Plot(HEIGHT, "search-curves");
  private readonly by = signal<By>("trials");
  /** What the reader has chosen: the numbers of two searches of `of`, which was the newest. */
  private readonly chosen = signal<{ of: number; pair: [number, number] } | null>(null);

  template(_search: Search | null, all: readonly Search[]): TemplateResult {
    const pair = this.pair(all);
    const by = this.by.value;
    const enough = all.length > 1;
    const curves = pair.map(({ trials }) => runningBest(trials, by));
    const options = all.map(({ number, name }) => ({ id: String(number), title: name }));
    const field = (which: 0 | 1): TemplateResult =>
      choice({
        label: ["First", "Second"][which]!,
        id: ["search-first", "search-second"][which]!,
        options,
        value: String(pair[which]?.number ?? ""),
        hidden: false,
        onChange: (id) => {
          const numbers = pair.map(({ number }) => number) as [number, number];
          numbers[which] = Number(id);
          this.chosen.value = { of: all.at(-1)!.number, pair: numbers };
        },
      });
    const note = enough
      ? "The best so far of both searches, as it was measured while they ran."
      : "With two searches, both can be compared here. They last until the page is closed.";
    const drawn = enough && curves.flat().length;
    return html`<div class="panel-form">
        ${field(0)}${field(1)}
        ${choice({
          label: "By",
          id: "search-by",
          options: ["trials", "seconds"].map((id) => ({ id, title: id })),
          value: by,
          onChange: (id) => {
            this.by.value = id as By;
          },
        })}
      </div>
      <p class="panel-note">${note}</p>
      ${this.plot.template(
        "The best so far of two searches; the table below has the numbers",
        drawn ? (width) => draw(curves, by, width) : null,
      )}
      <div class="table-box">${enough ? comparison(pair, curves, by) : nothing}</div>`;
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

function comparison(pair: Search[], curves: Step[][], by: By): TemplateResult {
  const near = Math.min(...curves.map((curve) => curve.at(-1)?.seconds ?? Infinity)) * NEAR;
  const shared = Math.min(...curves.map((curve) => curve.at(-1)?.x ?? 0));
  const unit = by === "trials" ? "trials" : "s";
  const rows: [string, (curve: Step[]) => string][] = [
    ["Best, ms", (curve) => text(curve.at(-1)?.seconds ?? null, ms)],
    [`Best after ${amount(shared)} ${unit}, ms`, (curve) => text(bestAt(curve, shared), ms)],
    [
      `${by === "trials" ? "Trials" : "Seconds"} to within 5 % of the better`,
      (curve) => text(reached(curve, near), amount),
    ],
  ];
  const names = pair.map(
    ({ name }, at) => html`<th scope="col"><span class="key curve-${at}">${name}</span></th>`,
  );
  const row = ([label, of]: (typeof rows)[number]): TemplateResult =>
    html`<tr><th scope="row">${label}</th>${curves.map(
      (curve) => html`<td class="number">${of(curve)}</td>`,
    )}</tr>`;
  return html`<table class="trials" data-testid="search-comparison">
    <thead><tr><th scope="col"></th>${names}</tr></thead><tbody>${rows.map(row)}</tbody></table>`;
}

function draw(curves: Step[][], by: By, width: number): unknown {
  const points = curves.flat();
  const frame = { left: 52, right: width - 14, top: 22, bottom: HEIGHT - 38 };
  const end: [number, number] = [0, Math.max(...points.map(({ x }) => x))];
  const times = extent(points.map(({ seconds }) => seconds * 1000));
  const x = linear(end, [frame.left, frame.right]);
  const y = logarithmic(times, [frame.bottom - 6, frame.top + 6]);
  const line = (curve: Step[], at: number): unknown => {
    const path = curve.map((step, index) => {
      const [px, py] = [x(step.x).toFixed(1), y(step.seconds * 1000).toFixed(1)];
      return index ? `H${px}V${py}` : `M${px} ${py}`;
    });
    return svg`<path d=${path.join("")} class="curve curve-${at}"></path>`;
  };
  return [
    axes(
      frame,
      { scale: x, ticks: ticks(end, width > 500 ? 8 : 4), text: String, title: by },
      {
        scale: y,
        ticks: logTicks(times),
        text: (value) => ms(value / 1000),
        title: "best so far, ms",
      },
    ),
    curves.map(line),
  ];
}

function amount(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function text(value: number | null, format: (value: number) => string): string {
  return value === null ? "–" : format(value);
}
