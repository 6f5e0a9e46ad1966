import { beforeEach, expect, test } from "vitest";
import { fromNotebook } from "../src/program/interchange";
import { Workspace } from "../src/program/workspace";

let room = Number.POSITIVE_INFINITY;
const stored = new Map<string, string>();

beforeEach(() => {
  room = Number.POSITIVE_INFINITY;
  stored.clear();
  Object.assign(globalThis, {
    localStorage: {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem(key: string, value: string) {
        if (value.length > room) throw new Error("QuotaExceededError");
        stored.set(key, value);
      },
      removeItem: (key: string) => stored.delete(key),
    },
  });
});

const one = (text: string) => ({ files: [{ name: "lesson.py", text }], open: "lesson.py" });
const texts = (tab: Workspace) =>
  Object.fromEntries(tab.files.files.map(({ name, text }) => [name, text]));

test("what two tabs write is kept, both", () => {
  const [first, second] = [new Workspace(one("begin")), new Workspace(one("begin"))];
  first.change(one("of the first"));
  first.save();
  second.change(one("of the second"));
  const told: unknown[] = [];
  second.save((renamed) => told.push(renamed));
  expect(told).toEqual([[["lesson.py", "lesson_2.py"]]]);
  const both = { "lesson.py": "of the second", "lesson_2.py": "of the first" };
  expect(texts(second)).toEqual(both);
  expect(texts(new Workspace(one("begin")))).toEqual(both);
  // Nobody else has written since.
  second.change(one("later"));
  second.save((renamed) => told.push(renamed));
  expect(told.length).toBe(1);
});

test("a tab that has nothing new stores nothing", () => {
  const [first, second] = [new Workspace(one("begin")), new Workspace(one("begin"))];
  first.save();
  const third = new Workspace(one("begin"));
  second.change(one("new"));
  second.save();
  third.save();
  expect(texts(new Workspace(one("begin")))).toEqual({ "lesson.py": "new" });
});

test("files that only the other tab has changed, or has more, are taken over", () => {
  const initial = {
    files: [
      { name: "a.py", text: "a" },
      { name: "b.py", text: "b" },
    ],
    open: "a.py",
  };
  const [first, second] = [new Workspace(initial), new Workspace(initial)];
  first.change({
    files: [
      { name: "a.py", text: "a" },
      { name: "b.py", text: "B" },
      { name: "c.py", text: "C" },
    ],
    open: "c.py",
  });
  first.save();
  second.change({
    files: [
      { name: "a.py", text: "A" },
      { name: "b.py", text: "b" },
    ],
    open: "a.py",
  });
  second.save(() => expect.unreachable());
  expect(texts(second)).toEqual({ "a.py": "A", "b.py": "B", "c.py": "C" });
  expect(second.files.open).toBe("a.py");
});

test("it is told when there is no room", () => {
  const tab = new Workspace(one("begin"));
  expect(tab.save()).toBe(true);
  room = 100;
  tab.change(one("x".repeat(200)));
  expect(tab.save()).toBe(false);
  room = 1000;
  expect(tab.save()).toBe(true);
});

test("cells of a notebook that are none are left out", () => {
  const cells = [null, 7, { cell_type: "code" }, { cell_type: "code", source: [null] }];
  const whole = { cell_type: "code", source: ["a = 1\n", "b = 2"] };
  expect(fromNotebook(JSON.stringify({ cells: [...cells, whole] }))).toBe("# %%\na = 1\nb = 2\n");
});
