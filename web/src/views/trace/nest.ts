/**
 * A loop nest as nested bars: how often each loop turns and how, which loop it came from, and what
 * the blocks inside read and write. It is a nested list, so that it can be heard as well as seen.
 */

import { element } from "../../dom";
import type { NestBlock, NestEntry, NestLoop, NestRegion } from "../../python/protocol";
import "./nest.css";

const COLOURS = 6;

/** What a loop or block is called if the step did something to it. */
const CHANGES: Record<string, string> = {
  new: "new",
  moved: "moved",
  edited: "changed",
};

/** Functions as nested lists. `marked` is whether changes are told. */
export function nestList(entries: NestEntry[], marked: boolean): HTMLElement {
  const most = Math.max(2, ...extents(entries));
  const several = entries.length > 1;
  const draw = (entry: NestEntry): HTMLElement => {
    const below = entry.body.length ? element("ul", {}, ...entry.body.map(draw)) : null;
    switch (entry.kind) {
      case "function":
        return element(
          "li",
          { class: "nest-function" },
          several ? element("div", { class: "nest-title" }, entry.name) : null,
          below,
        );
      case "statement":
        return element("li", { class: "nest-statement" }, element("code", {}, entry.text), below);
      case "loop":
        return loop(entry, most, marked, below);
      case "block":
        return block(entry, marked, below);
    }
  };
  return element("ul", { class: "nest-list" }, ...entries.map(draw));
}

/** Every loop's extent, where it is a number. */
function extents(entries: NestEntry[]): number[] {
  return entries.flatMap((entry) => [
    ...(entry.kind === "loop" && Number.isFinite(Number(entry.extent))
      ? [Number(entry.extent)]
      : []),
    ...extents(entry.body),
  ]);
}

function loop(
  entry: NestLoop,
  most: number,
  marked: boolean,
  below: HTMLElement | null,
): HTMLElement {
  const { name, extent, how, thread, notes, origin, colours } = entry;
  const change = marked ? entry.change : null;
  const gauge = element("span", { class: "nest-gauge", "aria-hidden": "true" });
  // A loop of 1024 turns would dwarf all others, so that lengths go by powers of two.
  gauge.style.setProperty(
    "--share",
    String(Math.log2(Math.max(1, Number(extent) || most)) / Math.log2(most)),
  );
  const bar = element(
    "div",
    { class: "nest-bar" },
    element(
      "span",
      { class: "nest-head" },
      element("code", { class: "nest-name" }, name),
      element("span", { class: "nest-extent" }, extent),
      element("span", { class: "nest-how" }, thread ?? how),
      change ? element("span", { class: "nest-change" }, CHANGES[change] ?? `now ${change}`) : null,
      element("span", { class: "nest-origin" }, [origin, ...notes].filter(Boolean).join("; ")),
    ),
    gauge,
  );
  const item = element(
    "li",
    {
      class: `nest-loop is-${how}`,
      "data-loop": name,
      "data-extent": extent,
      "data-kind": how,
      "data-change": change,
      "data-origin": origin,
    },
    bar,
    below,
  );
  const [first, second = first] = colours;
  item.style.setProperty("--origin", root(first));
  item.style.setProperty("--also", root(second));
  return item;
}

/** The colour of a loop of the program; `number` is undefined where nothing is known. */
function root(number: number | undefined): string {
  return number === undefined ? "var(--line-strong)" : `var(--root-${number % COLOURS})`;
}

function block(entry: NestBlock, marked: boolean, below: HTMLElement | null): HTMLElement {
  const { name, iterators, where, reads, writes, init, statement, buffers, notes } = entry;
  const change = marked ? entry.change : null;
  const facts = element("dl", { class: "nest-facts" });
  const fact = (term: string, ...values: (Node | string)[]): void => {
    if (values.length)
      facts.append(element("dt", {}, term), ...values.map((value) => element("dd", {}, value)));
  };
  fact("reads", ...reads.map(region));
  fact("writes", ...writes.map(region));
  fact(
    "with",
    ...iterators.map(({ name: iterator, type, value }) =>
      element(
        "span",
        {},
        element("code", {}, `${iterator} = ${value}`),
        type === "spatial" ? "" : ` ${type}`,
      ),
    ),
  );
  fact("where", ...(where === null ? [] : [element("code", {}, where)]));
  fact("first", ...(init === null ? [] : [element("code", {}, init)]));
  fact("does", ...(statement === null ? [] : [element("code", {}, statement)]));
  fact("keeps", ...buffers);
  fact("notes", ...notes);
  return element(
    "li",
    { class: "nest-block", "data-block": name, "data-change": change },
    element(
      "div",
      { class: "nest-bar" },
      element(
        "span",
        { class: "nest-head" },
        element("span", {}, "block ", element("code", { class: "nest-name" }, name)),
        change ? element("span", { class: "nest-change" }, CHANGES[change] ?? change) : null,
      ),
      facts,
    ),
    below,
  );
}

function region({ text, scope, elements }: NestRegion): HTMLElement {
  const size =
    elements === null || elements === 1 ? "" : ` ${elements.toLocaleString("en")} elements`;
  const place = scope === "" || scope === "global" ? "" : ` in ${scope} memory`;
  return element("span", {}, element("code", {}, text), `${size}${place}`);
}
