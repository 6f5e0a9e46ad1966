import { expect, test } from "vitest";
import { counted } from "../src/views/format";
import { onArrows, Pending } from "../src/views/kit";

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
