import { beforeEach, expect, test } from "vitest";
import { damagedCells, parseNotebook } from "../src/document/jupyter";
import { LessonProgress, progressOf } from "../src/lessons/progress";
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

test("what two tabs write and solve in a lesson is kept, both", () => {
  const [first, second] = [new LessonProgress("sums"), new LessonProgress("sums")];
  first.now = { ran: [1], passed: ["sum"], edits: { 1: "of the first", 2: "only the first" } };
  expect(first.store()).toEqual({ kept: true, theirs: {}, rivals: {} });
  second.now = { ran: [2], passed: [], edits: { 1: "of the second" } };
  expect(second.store()).toEqual({
    kept: true,
    theirs: { 2: "only the first" },
    rivals: { 1: "of the first" },
  });
  const both = { 1: "of the second", 2: "only the first" };
  expect(progressOf("sums")).toEqual({ ran: [2, 1], passed: ["sum"], edits: both });
  // It is told once, also where there is no room for what comes of it.
  room = 0;
  second.now.edits[1] = "later";
  expect(second.store()).toEqual({ kept: false, theirs: {}, rivals: {} });
  expect(progressOf("sums").edits[1]).toBe("later");
  expect(new LessonProgress("sums").now.edits).toEqual(both);
});

test("cells of a notebook that are none are left out, and counted", () => {
  const cells = [null, 7, { cell_type: "code" }, { cell_type: "code", source: [null] }];
  const whole = { cell_type: "code", source: ["a = 1\n", "b = 2"] };
  const text = JSON.stringify({ cells: [...cells, whole] });
  expect(fromNotebook(text)).toBe("# %%\na = 1\nb = 2\n");
  expect(damagedCells(text, parseNotebook(text))).toBe(4);
});
