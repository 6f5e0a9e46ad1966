/** Two searches beside each other: the best so far by trials and by time. */

import { element } from "../../dom";
import { axes, Drawing, extent, linear, logarithmic, logTicks, svg, ticks } from "../plot";
import { type By, bestAt, reached, runningBest, type Step } from "./curves";
import { ms, type SearchPanel } from "./panel";
import type { Search } from "./search";

const HEIGHT = 260;

/** A search is as good as another at this much more time. */
const NEAR = 1.05;

export class ComparePanel implements SearchPanel {
  readonly id = "search-compare";
  readonly title = "Compare";
  readonly root: HTMLElement;
  private readonly selects = [
    select("search-first", "First"),
    select("search-second", "Second"),
  ] as const;
  private readonly by = element("select", { id: "search-by", "data-testid": "search-by" });
  private readonly note = element("p", { class: "panel-note" });
  private readonly picture = element("div", {
    class: "plot",
    role: "img",
    "aria-label": "The best so far of two searches; the table below has the numbers",
    "data-testid": "search-curves",
  });
  private readonly table = element("table", {
    class: "trials",
    "data-testid": "search-comparison",
  });
  private readonly drawing: Drawing;
  private all: readonly Search[] = [];
  private curves: Step[][] = [];

  constructor() {
    this.drawing = new Drawing(this.picture, HEIGHT, (width) => this.draw(width));
    this.by.append(
      element("option", { value: "trials" }, "trials"),
      element("option", { value: "seconds" }, "seconds"),
    );
    for (const control of [...this.selects, this.by])
      control.addEventListener("change", () => this.refresh());
    this.root = element(
      "div",
      { class: "search-panel" },
      element(
        "div",
        { class: "panel-form" },
        element("label", { class: "field", for: "search-first" }, "First", this.selects[0]),
        element("label", { class: "field", for: "search-second" }, "Second", this.selects[1]),
        element("label", { class: "field", for: "search-by" }, "By", this.by),
      ),
      this.note,
      this.picture,
      element("div", { class: "table-box" }, this.table),
    );
  }

  show(_search: Search | null, all: readonly Search[]): void {
    this.all = all;
    const newest = all.length - 1;
    for (const [place, control] of this.selects.entries()) {
      const names = all.map(({ name }) => name);
      const old = control.value;
      if ([...control.options].map(({ text }) => text).join("\n") === names.join("\n")) continue;
      control.replaceChildren(
        ...all.map(({ number, name }) => element("option", { value: number }, name)),
      );
      const known = all.some(({ number }) => String(number) === old);
      // What is newest is compared with what was there before it.
      const preset = all[Math.max(0, place ? newest : newest - 1)];
      control.value = known && !place ? old : String(preset?.number ?? "");
    }
    this.refresh();
  }

  private get pair(): Search[] {
    return this.selects.flatMap(({ value }) =>
      this.all.filter(({ number }) => String(number) === value),
    );
  }

  private refresh(): void {
    const pair = this.pair;
    const by = this.by.value as By;
    this.curves = pair.map(({ trials }) => runningBest(trials, by));
    const enough = this.all.length > 1;
    this.note.textContent = enough
      ? "The best so far of both searches, as it was measured while they ran."
      : "Two searches can be set beside each other here once there are two. They are kept until the page is closed.";
    this.picture.classList.toggle("blank", !enough);
    this.drawing.update();
    this.table.replaceChildren(...(enough ? this.rows(pair, by) : []));
  }

  private rows(pair: Search[], by: By): HTMLElement[] {
    const bests = this.curves.map((curve) => curve.at(-1)?.seconds ?? Infinity);
    const near = Math.min(...bests) * NEAR;
    const shared = Math.min(...this.curves.map((curve) => curve.at(-1)?.x ?? 0));
    const unit = by === "trials" ? "trials" : "s";
    const cells: [string, (curve: Step[]) => string][] = [
      ["Best, ms", (curve) => (curve.length ? ms(curve.at(-1)!.seconds) : "–")],
      [`Best after ${amount(shared)} ${unit}, ms`, (curve) => text(bestAt(curve, shared), ms)],
      [
        `${by === "trials" ? "Trials" : "Seconds"} to within 5 % of the better`,
        (curve) => text(reached(curve, near), amount),
      ],
    ];
    const head = element(
      "tr",
      {},
      element("th", { scope: "col" }, ""),
      ...pair.map(({ name }, at) =>
        element("th", { scope: "col" }, element("span", { class: `key curve-${at}` }, name)),
      ),
    );
    return [
      element("thead", {}, head),
      element(
        "tbody",
        {},
        ...cells.map(([label, of]) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, label),
            ...this.curves.map((curve) => element("td", { class: "number" }, of(curve))),
          ),
        ),
      ),
    ];
  }

  private draw(width: number): (Node | string)[] {
    const points = this.curves.flat();
    if (!points.length || this.all.length < 2) return [];
    const frame = { left: 52, right: width - 14, top: 22, bottom: HEIGHT - 38 };
    const end: [number, number] = [0, Math.max(...points.map(({ x }) => x))];
    const times = extent(points.map(({ seconds }) => seconds * 1000));
    const x = linear(end, [frame.left, frame.right]);
    const y = logarithmic(times, [frame.bottom - 6, frame.top + 6]);
    const lines = this.curves.map((curve, at) => {
      const d = curve
        .map((step, index) => {
          const [px, py] = [x(step.x).toFixed(1), y(step.seconds * 1000).toFixed(1)];
          return index ? `H${px}V${py}` : `M${px} ${py}`;
        })
        .join("");
      return svg("path", { d, class: `curve curve-${at}` });
    });
    return [
      axes(
        frame,
        { scale: x, ticks: ticks(end, width > 500 ? 8 : 4), text: String, title: this.by.value },
        {
          scale: y,
          ticks: logTicks(times),
          text: (value) => ms(value / 1000),
          title: "best so far, ms",
        },
      ),
      ...lines,
    ];
  }
}

function select(id: string, label: string): HTMLSelectElement {
  return element("select", { id, "data-testid": id, "aria-label": label });
}

function amount(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function text(value: number | null, format: (value: number) => string): string {
  return value === null ? "–" : format(value);
}
