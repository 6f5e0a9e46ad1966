/** Decisions against time: parallel coordinates, and a table of the times by choice. */

import { signal } from "@preact/signals-core";
import { html, svg, type TemplateResult } from "lit-html";
import { counted, timing } from "../format";
import { choice, dataTable, folded } from "../kit";
import { extent, linear, logarithmic, logTicks, Plot, path, type Scale } from "../plot";
import {
  choices,
  type DecidedTrial,
  type DecisionTable,
  decisionTable,
  spacesOf,
} from "./decisions";
import type { Search } from "./search";

const HEIGHT = 240;
const FRAME = { left: 30, top: 34, bottom: HEIGHT - 16 };

/** More lines than these hide each other: the best half of them, and every nth of the rest. */
const MAX_LINES = 240;

/** The share of trials that count as good. */
const GOOD = 0.1;

/** An axis of the drawing: its name, where its values lie, and what stands beside it at which height. */
interface Upright {
  name: string;
  scale: Scale;
  marks: [value: number, text: string][];
}

export class DecisionsPanel {
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
      ? `Each line is a trial: its decisions, and its time on the right. The fastest ${Math.round(GOOD * 100)} % are highlighted.`
      : axes.length === 0 && trials.length
        ? "No decision here is a number."
        : "Decisions appear with the first trials.";
    const numbers = axes.flatMap(({ label }, axis) =>
      choices(table, axis).map(({ value, trials: count, best, median }) => [
        label,
        value,
        count,
        timing(best),
        timing(median),
      ]),
    );
    const times = dataTable(
      "Times by decision",
      ["Decision", "Value", "Trials", "Best", "Median"],
      numbers,
      { testId: "search-choices" },
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
        rows.length ? (width) => this.draw(rows, uprights(table), width) : null,
      )}
      ${folded("Time by choice", times)}`;
  }

  private draw(rows: DecidedTrial[], axes: Upright[], width: number): unknown {
    const { top, bottom } = FRAME;
    const last = axes.length - 1;
    const longest = Math.max(4, ...axes[last]!.marks.map(([, text]) => text.length));
    const across = linear([0, last], [FRAME.left, width - 14 - 8 * longest]);
    const line = (row: DecidedTrial, good: boolean): unknown => {
      const values = [...row.values, row.trial.seconds];
      const points = values.map((value, at) => [across(at), axes[at]!.scale(value)] as const);
      const decided = row.values.map((value, at) => `\n${axes[at]!.name} = ${value}`);
      const title = `Trial ${row.trial.index}, ${timing(row.trial.seconds)}`;
      return svg`<path d=${path(points)} class=${good ? "good" : ""}
        @click=${() => this.onChoose(row.trial.index)}><title>${title}${decided}</title></path>`;
    };
    // Names of neighbours are on two levels, so that they have room.
    const axis = ({ name, scale, marks }: Upright, at: number): unknown => {
      const x = across(at);
      return svg`<g class="plot-axes parallel-axis">
        <line x1=${x} x2=${x} y1=${top} y2=${bottom}></line>
        <text x=${x} y=${at % 2 ? 12 : 24} class="axis-name"
          text-anchor=${at === last ? "end" : at ? "middle" : "start"}>${short(name)}</text>
        ${marks.map(
          ([value, text]) => svg`<text x=${at === last ? x + 6 : x - 4} y=${scale(value) + 4}
            text-anchor=${at === last ? "start" : "end"}>${text}</text>`,
        )}</g>`;
    };
    return svg`<g class="parallel">${ranked(rows, line)}</g>${axes.map(axis)}`;
  }
}

/** An axis for each decision, and one for times. */
function uprights({ axes, rows }: DecisionTable): Upright[] {
  const { top, bottom } = FRAME;
  const decided = axes.map(({ label, values }): Upright => {
    const position = linear([0, values.length - 1], [bottom, top]);
    const step = values.length > 9 ? Math.ceil(values.length / 8) : 1;
    const named = values.filter((_, index) => index % step === 0);
    return {
      name: label,
      scale: (value) =>
        values[1] === undefined ? (top + bottom) / 2 : position(values.indexOf(value)),
      marks: named.map((value) => [value, String(value)]),
    };
  });
  const times = extent(rows.map(({ trial }) => trial.seconds));
  const marks = logTicks(times).map((tick): [number, string] => [tick, timing(tick)]);
  return [...decided, { name: "time", scale: logarithmic(times, [top, bottom]), marks }];
}

function short(label: string): string {
  return label.length > 14 ? `${label.slice(0, 13)}…` : label;
}

/** The lines to draw, slow ones first, so that the best lie on top. */
function ranked(
  rows: DecidedTrial[],
  line: (row: DecidedTrial, good: boolean) => unknown,
): unknown[] {
  const sorted = [...rows].sort((a, b) => b.trial.seconds - a.trial.seconds);
  const good = sorted.length - Math.max(1, Math.round(sorted.length * GOOD));
  const rest = sorted.length - MAX_LINES / 2;
  const step = sorted.length > MAX_LINES ? Math.ceil(rest / (MAX_LINES / 2)) : 1;
  return sorted.flatMap((row, at) =>
    at >= rest || at % step === 0 ? [line(row, at >= good)] : [],
  );
}
