/** Decisions against time: parallel coordinates, and a table of the times by choice. */

import { signal } from "@preact/signals-core";
import { html, svg, type TemplateResult } from "lit-html";
import { choice, counted, dataTable } from "../kit";
import { extent, linear, logarithmic, logTicks, Plot, type Scale } from "../plot";
import {
  choices,
  type DecidedTrial,
  type DecisionTable,
  decisionTable,
  spacesOf,
} from "./decisions";
import { ms, type SearchPanel } from "./panel";
import type { Search } from "./search";
import type { ShownTrial } from "./trials";

const HEIGHT = 240;
const MARGIN = { left: 30, right: 46, top: 34, bottom: 16 };

/** More lines than these hide each other: the best half of them, and every nth of the rest. */
const MAX_LINES = 240;

/** The share of trials that count as good. */
const GOOD = 0.1;

type Table = DecisionTable<ShownTrial>;

export class DecisionsPanel implements SearchPanel {
  readonly id = "search-decisions";
  readonly title = "Decisions";
  private readonly plot = new Plot(HEIGHT, "search-parallel");
  /** The design space that the reader has chosen for a search. */
  private readonly chosen = signal<{ search: Search | null; space: number } | null>(null);

  constructor(private readonly onChoose: (index: number) => void) {}

  template(search: Search | null): TemplateResult {
    const trials = search?.trials ?? [];
    const spaces = spacesOf(trials);
    const chosen = this.chosen.value?.search === search ? this.chosen.value?.space : undefined;
    const space = chosen ?? spaces[0]?.space ?? 0;
    const table = decisionTable(trials, space, search?.labels.get(space) ?? []);
    const { axes, rows } = table;
    const note = rows.length
      ? `Each line is a trial: what it decided, and at the right its time. The fastest ${Math.round(GOOD * 100)} % are highlighted.`
      : axes.length === 0 && trials.length
        ? "No decision here is a number."
        : "Decisions appear with the first trials.";
    const numbers = axes.flatMap(({ label }, axis) =>
      choices(table, axis).map(({ value, trials: count, best, median }) => [
        label,
        value,
        count,
        ms(best),
        ms(median),
      ]),
    );
    return html`${choice({
      label: "Design space",
      options: spaces.map(({ space: id, trials: count }) => ({
        id: String(id),
        title: `${id + 1}: ${counted(count, "trial")}`,
      })),
      value: String(space),
      onChange: (id) => {
        this.chosen.value = { search, space: Number(id) };
      },
    })}
      <p class="panel-note">${note}</p>
      ${this.plot.template(
        "Decisions against time; the table below has the numbers",
        rows.length ? (width) => this.draw(table, width) : null,
      )}
      <details class="numbers"><summary>Time by choice</summary>${dataTable(
        "Times by decision",
        ["Decision", "Value", "Trials", "Best, ms", "Median, ms"],
        numbers,
        { testId: "search-choices", terms: 1 },
      )}</details>`;
  }

  private draw({ axes, rows }: Table, width: number): unknown {
    const { top } = MARGIN;
    const bottom = HEIGHT - MARGIN.bottom;
    const across = linear([0, axes.length], [MARGIN.left, width - MARGIN.right]);
    const times = extent(rows.map(({ trial }) => trial.seconds! * 1000));
    const time = logarithmic(times, [bottom, top]);
    const fast: Scale = (value) => top + bottom - time(value);
    const scales = axes.map(({ values }): Scale => {
      const position = linear([0, Math.max(1, values.length - 1)], [bottom, top]);
      return (value) =>
        values.length === 1 ? (top + bottom) / 2 : position(values.indexOf(value));
    });
    const labels = axes.map(({ label }) => label);
    const line = ({ row, good }: Ranked): unknown => {
      const points = [
        ...row.values.map((value, axis) => [across(axis), scales[axis]!(value)] as const),
        [across(axes.length), fast(row.trial.seconds! * 1000)] as const,
      ];
      const path = points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
      return svg`<path d=${path.join("")} class=${good ? "good" : ""}
        @click=${() => this.onChoose(row.trial.index)}><title>${lineTitle(row, labels)}</title></path>`;
    };
    // Names of neighbours are on two levels, so that they have room.
    const axis = (at: number, name: string, texts: [y: number, text: string][]): unknown => {
      const x = across(at);
      const last = at === axes.length;
      return svg`<g class="plot-axes parallel-axis">
        <line x1=${x} x2=${x} y1=${top} y2=${bottom}></line>
        <text x=${x} y=${at % 2 ? 12 : 24} class="axis-name"
          text-anchor=${last ? "end" : at ? "middle" : "start"}>${short(name)}</text>
        ${texts.map(
          ([y, text]) => svg`<text x=${last ? x + 6 : x - 4} y=${y + 4}
            text-anchor=${last ? "start" : "end"}>${text}</text>`,
        )}</g>`;
    };
    const valueTexts = (at: number): [number, string][] => {
      const { values } = axes[at]!;
      const step = values.length > 9 ? Math.ceil(values.length / 8) : 1;
      return values
        .filter((_, index) => index % step === 0)
        .map((value) => [scales[at]!(value), String(value)]);
    };
    const timeTexts = logTicks(times).map((tick): [number, string] => [
      fast(tick),
      ms(tick / 1000),
    ]);
    return svg`<g class="parallel">${ranked(rows).map(line)}</g>
      ${labels.map((label, at) => axis(at, label, valueTexts(at)))}
      ${axis(axes.length, "ms", timeTexts)}`;
  }
}

function short(label: string): string {
  const named = label.replace(", part ", " ");
  return named.length > 14 ? `${named.slice(0, 13)}…` : named;
}

function lineTitle({ trial, values }: DecidedTrial, labels: string[]): string {
  const decided = labels.map((label, axis) => `${label} = ${values[axis]}`).join("\n");
  return `Trial ${trial.index}, ${ms(trial.seconds!)} ms\n${decided}`;
}

interface Ranked {
  row: DecidedTrial<ShownTrial>;
  good: boolean;
}

/** The lines to draw, slow ones first, so that the best lie on top. */
function ranked(rows: Table["rows"]): Ranked[] {
  const sorted = [...rows].sort((a, b) => b.trial.seconds! - a.trial.seconds!);
  const good = Math.max(1, Math.round(sorted.length * GOOD));
  const surplus = sorted.length - MAX_LINES;
  const step = surplus > 0 ? Math.ceil((sorted.length - MAX_LINES / 2) / (MAX_LINES / 2)) : 1;
  return sorted
    .map((row, at) => ({ row, good: at >= sorted.length - good }))
    .filter((_, at) => surplus <= 0 || at >= sorted.length - MAX_LINES / 2 || at % step === 0);
}
