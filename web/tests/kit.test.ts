import { signal } from "@preact/signals-core";
import { expect, test } from "vitest";
import { counted } from "../src/views/format";
import { groupBy, onArrows, Pending, paced } from "../src/views/kit";
import { path } from "../src/views/plot";

/** Where a key leads in a list of items, and whether the page still sees the key. */
function press(key: string, items: number[], current: number): [number | null, boolean] {
  let [target, prevented]: [number | null, boolean] = [null, false];
  const event = {
    key,
    preventDefault: () => {
      prevented = true;
    },
  };
  onArrows(event as KeyboardEvent, items, current, (item) => {
    target = item;
  });
  return [target, prevented];
}

test("arrow keys step over what is not listed, and stop at the ends", () => {
  const listed = [0, 3, 4, 9];
  expect(press("ArrowDown", listed, 0)).toEqual([3, true]);
  expect(press("ArrowLeft", listed, 9)).toEqual([4, true]);
  expect(press("ArrowUp", listed, 2)).toEqual([0, true]);
  expect(press("ArrowDown", listed, 9)).toEqual([null, true]);
  expect(press("Home", listed, 4)).toEqual([0, true]);
  expect(press("End", listed, 4)).toEqual([9, true]);
  expect(press("End", [], 0)).toEqual([null, true]);
  expect(press("a", listed, 4)).toEqual([null, false]);
});

test("work waits until its panel is in sight, and is done once", () => {
  const panel = { hidden: true };
  let done = 0;
  const load = new Pending(panel as HTMLElement, () => {
    done += 1;
  });
  load.ask();
  load.look();
  expect(done).toBe(0);
  panel.hidden = false;
  load.look();
  load.look();
  expect(done).toBe(1);
  load.ask();
  expect(done).toBe(2);
  panel.hidden = true;
  load.ask();
  load.drop();
  panel.hidden = false;
  load.look();
  expect(done).toBe(2);
});

test("nouns follow their counts", () => {
  expect([counted(1, "line"), counted(0, "line"), counted(1200, "trial")]).toEqual([
    "1 line",
    "0 lines",
    "1,200 trials",
  ]);
});

test("many changes are followed once, when there is time, and at once when asked", () => {
  const due: (() => void)[] = [];
  const source = signal(0);
  const shown = paced(source, (look) => due.push(look));
  source.value = 1;
  source.value = 2;
  expect([shown.value, due.length]).toEqual([0, 1]);
  due.pop()!();
  expect(shown.value).toBe(2);
  source.value = 3;
  expect([shown.value, due.length]).toEqual([2, 1]);
  shown.look();
  expect(shown.value).toBe(3);
});

test("what is out of sight is not drawn", () => {
  const panel = { offsetParent: null as object | null };
  const source = signal(0);
  const shown = paced(source, () => undefined, panel as HTMLElement);
  source.value = 1;
  shown.look();
  expect(shown.value).toBe(0);
  panel.offsetParent = {};
  shown.look();
  expect(shown.value).toBe(1);
});

test("items are grouped by a key, in the order in which they came", () => {
  expect([...groupBy([3, 4, 1, 6], (item) => item % 2)]).toEqual([
    [1, [3, 1]],
    [0, [4, 6]],
  ]);
});

test("a line goes through points, or across and then down in steps", () => {
  const points = [[0, 10] as const, [5, 4] as const];
  expect(path(points)).toBe("M0.0 10.0L5.0 4.0");
  expect(path(points, true)).toBe("M0.0 10.0H5.0V4.0");
});
