import { expect, test } from "vitest";
import type { StepOutcome, TraceStep } from "../src/python/wire";
import { countChanges, markedLines, runs, settled } from "../src/views/trace/diff";
import { lookUp, readState } from "../src/views/trace/state";
import { comparedWith, effects, effectText, StepTimer } from "../src/views/trace/timing";

const same = (count: number, name: string): string[] =>
  Array.from({ length: count }, (_, n) => ` ${name}${n}`);

test("a diff is read line by line, also its empty lines", () => {
  const lines = markedLines(" a\n-b\n+c\n ");
  expect(lines.map(({ kind }) => kind)).toEqual(["same", "removed", "added", "same"]);
  expect(lines.map(({ text }) => text)).toEqual(["a", "b", "c", ""]);
  expect(countChanges(lines)).toEqual({ added: 1, removed: 1, shifted: 0 });
  expect(settled(lines)).toEqual(["a", "c", ""].map((text) => ({ kind: "same", text })));
});

test("what is far from a change folds away, and nothing is lost", () => {
  const diff = [...same(20, "a"), "-old", "+new", ...same(20, "b")];
  const lines = markedLines(diff.join("\n"));
  const found = runs(lines);
  expect(found.map(({ folded, lines: { length } }) => [folded, length])).toEqual([
    [true, 17],
    [false, 8],
    [true, 17],
  ]);
  expect(found.flatMap((run) => run.lines)).toEqual(lines);
});

test("a line that comes back with another indentation is no change", () => {
  const lines = markedLines("-for i:\n-  a\n-  b\n+for j:\n+  for i:\n+    a\n+    c\n x");
  expect(lines.map(({ kind, text }) => `${kind} ${text.trim()}`)).toEqual([
    "added for j:",
    "shifted for i:",
    "shifted a",
    "removed b",
    "added c",
    "same x",
  ]);
  // What is shown as the program now is the program now.
  expect(settled(lines).map(({ text }) => text)).toEqual([
    "for j:",
    "  for i:",
    "    a",
    "    c",
    "x",
  ]);
});

test("short gaps between changes stay open", () => {
  const diff = ["+x", ...same(8, "a"), "+y", ...same(40, "b"), "-z"];
  const found = runs(markedLines(diff.join("\n")));
  expect(found.map(({ folded }) => folded)).toEqual([false, true, false]);
  expect(found[0]!.lines).toHaveLength(13);
});

test("a program without changes is shown whole", () => {
  expect(runs(markedLines(same(50, "a").join("\n")))).toHaveLength(1);
});

const step = (index: number): TraceStep => ({
  index,
  instruction: null,
  words: "",
  changed: true,
  diff: "",
  nest: [],
  removed: [],
});
const took = (seconds: number): StepOutcome => ({
  state: "measured",
  seconds,
  repeats: [seconds],
  reason: null,
});

test("a step's effect is told against the step before that has a time", () => {
  const steps = [0, 1, 2, 3].map(step);
  const failed: StepOutcome = { state: "failed", seconds: null, repeats: [], reason: "too long" };
  const found = effects(
    steps,
    new Map([
      [0, took(8e-3)],
      [1, failed],
      [2, took(2e-3)],
      [3, took(4e-3)],
    ]),
  );
  expect([...found.values()].map(({ factor }) => factor)).toEqual([null, null, 4, 0.5]);
  expect([...found.values()].map(({ share }) => share)).toEqual([1, 0, 0.25, 0.5]);
  expect([...found.values()].map(effectText)).toEqual([
    "8 ms",
    "no time: too long",
    "2 ms ×4.00",
    "4 ms ×0.50",
  ]);
});

test("times are compared in words", () => {
  expect(comparedWith(1, 3, "before")).toBe("3.00× faster than before");
  expect(comparedWith(3, 1, "before")).toBe("3.00× slower than before");
  expect(comparedWith(1, 1.01, "before")).toBe("as fast as before");
});

function timerOn(answers: Record<string, unknown>): { timer: StepTimer; calls: string[] } {
  const calls: string[] = [];
  const session = {
    state: "ready",
    stopTrials: () => calls.push("trials stopped"),
    stop: () => Promise.resolve(),
    call: (name: string, ...args: unknown[]) => {
      calls.push([name, ...args.filter((arg) => typeof arg === "number")].join(" "));
      return Promise.resolve(answers[name]);
    },
  };
  return { timer: new StepTimer(session as never), calls };
}

test("steps are timed one after another, and the workers are let go", async () => {
  const { timer, calls } = timerOn({
    "trace_timing.begin": { id: "m1", outcome: took(2) },
    "trace_timing.step": took(1),
    "trace_timing.finish": null,
  });
  const told: [number, number | undefined][] = [];
  await timer.run("t1", {}, [4, 6], (index, outcome) =>
    told.push([index, outcome?.seconds ?? undefined]),
  );
  expect(told).toEqual([
    [0, undefined],
    [0, 2],
    [4, undefined],
    [4, 1],
    [6, undefined],
    [6, 1],
  ]);
  expect(calls).toEqual([
    "trace_timing.begin",
    "trace_timing.step 4",
    "trace_timing.step 6",
    "trace_timing.finish",
  ]);
});

test("a stopped timing begins no further step", async () => {
  const { timer, calls } = timerOn({
    "trace_timing.begin": { id: "m1", outcome: took(2) },
    "trace_timing.step": took(1),
    "trace_timing.finish": null,
  });
  await timer.run("t1", {}, [4, 6], (index) => {
    if (index === 4) timer.stop();
  });
  expect(timer.stopped).toBe(true);
  expect(calls).toEqual([
    "trace_timing.begin",
    "trials stopped",
    "trace_timing.step 4",
    "trials stopped",
    "trace_timing.finish",
  ]);
});

test("a link's state is taken if it is one", () => {
  const state = { shown: { index: 1, title: "sch", changes: { 3: [4, 4] } }, step: 5 };
  expect(readState(JSON.parse(JSON.stringify(state)))).toEqual(state);
  const both = { ...state, second: { index: 0, title: "other", changes: {} } };
  expect(readState(both)).toEqual(both);
  for (const wrong of [
    null,
    undefined,
    7,
    {},
    { ...state, step: "5" },
    { ...state, shown: { ...state.shown, changes: { x: 1 } } },
  ]) {
    expect(readState(wrong)).toBeNull();
  }
});

test("a trace is found by its place and title, or by its title alone", () => {
  const traces = [{ title: "a" }, { title: "b" }, { title: "a" }];
  const find = (index: number, title: string): number =>
    traces.indexOf(lookUp(traces, { index, title, changes: {} })!);
  expect(find(2, "a")).toBe(2);
  expect(find(0, "b")).toBe(1);
  expect(find(9, "a")).toBe(0);
  expect(find(1, "gone")).toBe(-1);
});
