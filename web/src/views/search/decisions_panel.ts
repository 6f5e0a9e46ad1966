/** Decisions against time: parallel coordinates, and a table of what each choice came to. */

import { element } from "../../dom";
import { chooser } from "../parts";
import { Drawing, extent, linear, logarithmic, logTicks, type Scale, svg } from "../plot";
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

/** More lines than these hide each other: the best half of them, and every so manyth of the rest. */
const MAX_LINES = 240;

/** The share of trials that count as good. */
const GOOD = 0.1;

type Table = DecisionTable<ShownTrial>;

export class DecisionsPanel implements SearchPanel {
  readonly id = "search-decisions";
  readonly title = "Decisions";
  readonly root: HTMLElement;
  private readonly note = element("p", { class: "panel-note" });
  private readonly choice = element("div");
  private readonly picture = element("div", {
    class: "plot",
    role: "img",
    "aria-label": "Decisions against time; the table below has the numbers",
    "data-testid": "search-parallel",
  });
  private readonly body = element("tbody");
  private readonly drawing: Drawing;
  private search: Search | null = null;
  private space: number | null = null;
  private table: Table = { axes: [], rows: [] };

  constructor(private readonly onChoose: (index: number) => void) {
    this.drawing = new Drawing(this.picture, HEIGHT, (width) => this.draw(width));
    const head = ["Decision", "Value", "Trials", "Best, ms", "Median, ms"];
    this.root = element(
      "div",
      { class: "search-panel" },
      this.choice,
      this.note,
      this.picture,
      element(
        "details",
        { class: "numbers" },
        element("summary", {}, "What each choice came to"),
        element(
          "div",
          { class: "table-box" },
          element(
            "table",
            { class: "trials", "data-testid": "search-choices" },
            element("caption", { class: "visually-hidden" }, "Times by decision"),
            element(
              "thead",
              {},
              element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name))),
            ),
            this.body,
          ),
        ),
      ),
    );
  }

  show(search: Search | null): void {
    if (search !== this.search) this.space = null;
    this.search = search;
    const spaces = search ? spacesOf(search.trials) : [];
    const space = this.space ?? spaces[0]?.space ?? 0;
    this.table = decisionTable(search?.trials ?? [], space, search?.labels.get(space) ?? []);
    const { axes, rows } = this.table;
    const items = spaces.map(({ space: id, trials }) => ({
      id: String(id),
      title: `${id + 1}: ${trials} ${trials === 1 ? "trial" : "trials"}`,
    }));
    const select = chooser("Design space", items, String(space), (id) => {
      this.space = Number(id);
      this.show(this.search);
    });
    if (this.choice.textContent !== select.textContent) this.choice.replaceChildren(select);
    this.picture.classList.toggle("blank", rows.length === 0);
    this.note.textContent = rows.length
      ? `Each line is a trial: what it decided, and at the right its time. Emphasised are the fastest ${Math.round(GOOD * 100)} %.`
      : axes.length === 0 && search?.trials.length
        ? "Nothing is decided by chance here, or not by numbers."
        : "Decisions appear with the first trials.";
    this.drawing.update();
    this.body.replaceChildren(...this.tableRows());
  }

  private tableRows(): HTMLElement[] {
    return this.table.axes.flatMap(({ label }, axis) =>
      choices(this.table, axis).map(({ value, trials, best, median: middle }) =>
        element(
          "tr",
          {},
          element("td", {}, label),
          ...[String(value), String(trials), ms(best), ms(middle)].map((text) =>
            element("td", { class: "number" }, text),
          ),
        ),
      ),
    );
  }

  private draw(width: number): (Node | string)[] {
    const { axes, rows } = this.table;
    if (!rows.length) return [];
    const top = MARGIN.top;
    const bottom = HEIGHT - MARGIN.bottom;
    const across = linear([0, axes.length], [MARGIN.left, width - MARGIN.right]);
    const times = extent(rows.map(({ trial }) => trial.seconds! * 1000));
    const time = logarithmic(times, [bottom, top]);
    const fast: Scale = (value) => top + bottom - time(value);
    const scales = axes.map(({ values }): Scale => {
      const place = linear([0, Math.max(1, values.length - 1)], [bottom, top]);
      return (value) => (values.length === 1 ? (top + bottom) / 2 : place(values.indexOf(value)));
    });
    const lines = svg("g", { class: "parallel" });
    for (const { row, good } of ranked(rows)) {
      const points = [
        ...row.values.map((value, axis) => [across(axis), scales[axis]!(value)] as const),
      ];
      points.push([across(axes.length), fast(row.trial.seconds! * 1000)]);
      const d = points
        .map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`)
        .join("");
      const line = svg(
        "path",
        { d, class: good ? "good" : "" },
        title(
          row,
          axes.map(({ label }) => label),
        ),
      );
      line.addEventListener("click", () => this.onChoose(row.trial.index));
      lines.append(line);
    }
    const upright = axes.map(({ label, values }, axis) => {
      const shown =
        values.length > 9
          ? values.filter((_, at) => at % Math.ceil(values.length / 8) === 0)
          : values;
      return axisLine(across(axis), top, bottom, label, axis, shown, scales[axis]!, String);
    });
    const timeAxis = axisLine(
      across(axes.length),
      top,
      bottom,
      "ms",
      axes.length,
      logTicks(times),
      fast,
      (v) => ms(v / 1000),
      true,
    );
    return [lines, ...upright, timeAxis];
  }
}

function axisLine(
  x: number,
  top: number,
  bottom: number,
  label: string,
  index: number,
  values: number[],
  scale: Scale,
  text: (value: number) => string,
  right = false,
): SVGGElement {
  const side = right ? { x: x + 6, "text-anchor": "start" } : { x: x - 4, "text-anchor": "end" };
  return svg(
    "g",
    { class: "plot-axes parallel-axis" },
    svg("line", { x1: x, x2: x, y1: top, y2: bottom }),
    // Names of neighbours stand on two levels, so that they have room.
    svg(
      "text",
      {
        x,
        y: index % 2 ? 12 : 24,
        "text-anchor": right ? "end" : index ? "middle" : "start",
        class: "axis-name",
      },
      short(label),
    ),
    ...values.map((value) => svg("text", { ...side, y: scale(value) + 4 }, text(value))),
  );
}

function short(label: string): string {
  const named = label.replace(", part ", " ");
  return named.length > 14 ? `${named.slice(0, 13)}…` : named;
}

function title({ trial, values }: DecidedTrial, labels: string[]): SVGTitleElement {
  const decided = labels.map((label, axis) => `${label} = ${values[axis]}`).join("\n");
  return svg("title", {}, `Trial ${trial.index}, ${ms(trial.seconds!)} ms\n${decided}`);
}

/** The lines to draw, slow ones first, so that the best lie on top. */
function ranked(
  rows: readonly DecidedTrial<ShownTrial>[],
): { row: DecidedTrial<ShownTrial>; good: boolean }[] {
  const sorted = [...rows].sort((a, b) => b.trial.seconds! - a.trial.seconds!);
  const good = Math.max(1, Math.round(sorted.length * GOOD));
  const surplus = sorted.length - MAX_LINES;
  const step = surplus > 0 ? Math.ceil((sorted.length - MAX_LINES / 2) / (MAX_LINES / 2)) : 1;
  return sorted
    .map((row, at) => ({ row, good: at >= sorted.length - good }))
    .filter((_, at) => surplus <= 0 || at >= sorted.length - MAX_LINES / 2 || at % step === 0);
}
