import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SearchSettings, StoredRecord, TrialUpdate } from "../src/python/wire";
import { linear, logarithmic, logTicks, ticks } from "../src/views/plot";
import { bestAt, reached, runningBest } from "../src/views/search/curves";
import { choices, decisionTable, median, numbersOf, spacesOf } from "../src/views/search/decisions";
import { accuracy, predicted, rounds } from "../src/views/search/ranking";
import {
  earlier,
  kindOf,
  RECORDS,
  RecordStore,
  RecordWriter,
  toFiles,
  WORKLOADS,
} from "../src/views/search/records";
import { Search } from "../src/views/search/search";
import { outcome, type Trial } from "../src/views/search/trials";

function trial(index: number, seconds: number | null, more: Partial<Trial> = {}): Trial {
  const nothing = {
    reason: null,
    sameAs: null,
    confirmed: false,
    decisions: [],
    space: 0,
    predicted: null,
    round: 0,
  };
  return {
    index,
    state: seconds === null ? "failed" : "measured",
    seconds,
    at: index,
    ...nothing,
    ...more,
  };
}

test("decisions become axes, one for each number, and choices are summed up by value", () => {
  expect(["[4, 32]", "3", "None", "x["].map(numbersOf)).toEqual([[4, 32], [3], [], []]);
  const trials = [
    trial(0, 0.004, { decisions: ["[2, 8]", "1"] }),
    trial(1, 0.002, { decisions: ["[4, 4]", "0"] }),
    trial(2, 0.001, { decisions: ["[4, 4]", "1"] }),
    trial(3, null, { decisions: ["[1, 16]", "1"] }),
    trial(4, 0.003, { decisions: ["[16]"], space: 1 }),
  ];
  expect(spacesOf(trials)).toEqual([
    { space: 0, trials: 3 },
    { space: 1, trials: 1 },
  ]);
  const table = decisionTable(trials, 0, [["j_0", "j_1"], ["lanes"]]);
  expect(table.axes).toEqual([
    { label: "j_0", values: [2, 4] },
    { label: "j_1", values: [4, 8] },
    { label: "lanes", values: [0, 1] },
  ]);
  expect(choices(table, 0)).toEqual([
    { value: 2, trials: 1, best: 0.004, median: 0.004 },
    { value: 4, trials: 2, best: 0.001, median: 0.0015 },
  ]);
  expect(median([1, 2, 9])).toBe(2);
});

test("accuracy counts pairs within a round, ties of time not at all, ties of scores by half", () => {
  const scored = (index: number, seconds: number, score: number, round = 0): Trial =>
    trial(index, seconds, { predicted: score, round });
  const right = [scored(0, 3, 0.1), scored(1, 2, 0.2), scored(2, 1, 0.3), trial(3, 1)];
  expect(accuracy(predicted(right))).toEqual({ share: 1, pairs: 3 });
  const mixed = [scored(0, 3, 0.5), scored(1, 1, 0.5), scored(2, 1.01, 0.4)];
  expect(accuracy(predicted(mixed))).toEqual({ share: 0.25, pairs: 2 });
  const apart = [scored(0, 3, 0.9, 0), scored(1, 1, 0.1, 1)];
  expect(accuracy(predicted(apart))).toEqual({ share: null, pairs: 0 });
  expect([...rounds(predicted(apart)).keys()]).toEqual([0, 1]);
});

test("the best so far falls by trials and by time, in the order of arrival", () => {
  const trials = [trial(0, 4, { at: 2 }), trial(1, 5, { at: 1 }), trial(2, null), trial(3, 1)];
  expect(runningBest(trials, "trials")).toEqual([
    { x: 1, seconds: 5 },
    { x: 2, seconds: 4 },
    { x: 4, seconds: 1 },
  ]);
  const curve = runningBest(trials, "seconds");
  expect(curve.map(({ x }) => x)).toEqual([1, 2, 3]);
  expect([reached(curve, 4), reached(curve, 0.5), bestAt(curve, 2.5), bestAt(curve, 0)]).toEqual([
    2,
    null,
    4,
    null,
  ]);
});

test("scales map ends to ends, ticks are round", () => {
  expect(linear([0, 10], [100, 0])(5)).toBe(50);
  expect(logarithmic([1, 100], [0, 2])(10)).toBeCloseTo(1);
  expect(ticks([0, 97], 5)).toEqual([0, 20, 40, 60, 80]);
  expect(ticks([0, 3], 8, 1)).toEqual([0, 1, 2, 3]);
  expect(logTicks([0.09, 3])).toEqual([0.1, 0.2, 0.5, 1, 2]);
  expect(logTicks([0.61, 0.63]).length).toBeGreaterThan(1);
});

function record(id: string, seconds: number | null, program: string | null = id): StoredRecord {
  return { id, workload: "w", program, seconds, record: `["${id}"]` };
}

test("where the browser's database fails, records are in memory from then on", async () => {
  const failing = (): never => {
    throw new Error("QuotaExceededError");
  };
  const store = new RecordStore(
    Promise.resolve({
      transaction: failing,
      getAll: failing,
      getAllFromIndex: async () => [],
      count: () => Promise.reject(new Error("damaged")),
    }),
  );
  expect(store.lasting).toBe(true);
  expect(await store.ofWorkload("w")).toEqual([]);
  await Promise.all([
    store.add({ key: "w", line: "" }, [record("a", 2)]),
    store.add({ key: "w", line: "" }, [record("b", 1)]),
  ]);
  expect(store.lasting).toBe(false);
  expect([await store.count(), (await store.ofWorkload("w")).length]).toEqual([2, 2]);
});

test("damaged records are left out and counted", () => {
  const damaged = [null, 7, {}, { ...record("b", 1), record: 5 }, record("c", 1, "no hash")];
  const wrong = { ...record("d", 1), seconds: "1" };
  expect(earlier([...damaged, wrong, record("a", 2)])).toEqual({
    programs: [["a", 2]],
    lines: [{ record: '["a"]', program: "a" }],
    unreadable: 6,
  });
});

test("records become TVM's two files, with the number of the workload before each", async () => {
  const store = new RecordStore(null);
  await store.add({ key: "w", line: '["1","m"]' }, [record("a", 2), record("b", null)]);
  await store.add({ key: "v", line: '["2","n"]' }, [{ ...record("c", 1), workload: "v" }]);
  await store.add({ key: "empty", line: '["3","o"]' }, []);
  await store.add({ key: "w", line: '["1","m"]' }, [{ ...record("a", 3), record: '["later"]' }]);
  expect(await store.count()).toBe(3);
  expect(toFiles(await store.all())).toEqual({
    [WORKLOADS]: '["1","m"]\n["2","n"]\n',
    [RECORDS]: '[0,["later"]]\n[0,["b"]]\n[1,["c"]]\n',
  });
  expect(earlier(await store.ofWorkload("w"))).toEqual({
    programs: [
      ["a", 3],
      ["b", null],
    ],
    lines: [{ record: '["later"]', program: "a" }],
    unreadable: 0,
  });
  await store.clear();
  expect(await store.count()).toBe(0);
});

test("files of records are told by their name or their first line", () => {
  expect(kindOf("database_workload (1).json", "")).toBe(WORKLOADS);
  expect(kindOf("my_tuning_record.json", "")).toBe(RECORDS);
  expect(kindOf("a.json", '["123","..."]')).toBe(WORKLOADS);
  expect(kindOf("b.json", "[0, [[[]]]]")).toBe(RECORDS);
  expect(kindOf("c.json", '{"a": 1}')).toBeNull();
});

test("a search keeps the names of decisions and says how far it is", () => {
  const settings = {
    document: "program",
    module: "M",
    function: null,
    strategy: "random",
    scheduleFunction: null,
    seed: 0,
    trials: null,
    seconds: 10,
    workers: 1,
  } as const;
  const search = new Search("program", "M", settings, null);
  search.spent = 4000;
  search.add({ ...trial(0, 1), labels: [["j"]], record: null });
  expect(search.labels.get(0)).toEqual([["j"]]);
  expect(search.trials[0]!.at).toBe(4);
  expect(search.share).toBeCloseTo(0.4);
  search.rest("ended", "Stopped");
  expect(search.share).toBe(1);
  expect(search.said.value).toBe("Stopped: 1 trial");
});

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("records are written together, a while after the first", async () => {
  const store = new RecordStore(null);
  const stored = vi.fn();
  const writer = new RecordWriter(store, stored);
  for (const id of ["a", "b"]) writer.add({ key: "w", line: "" }, record(id, 1));
  expect(await store.count()).toBe(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await store.count()).toBe(2);
  expect(stored).toHaveBeenCalledTimes(1);
  await writer.flush();
  expect(stored).toHaveBeenCalledTimes(1);
});

test("the figures of a search agree with each other, and with its budget", () => {
  const settings = { strategy: "random", seconds: null } as SearchSettings;
  const search = new Search("program", "MyModule", settings, 4);
  const { at: _at, ...plain } = trial(0, 0.001, { state: "recalled" });
  search.add({ ...plain, record: null } as TrialUpdate);
  for (const index of [1, 2, 3, 4]) {
    search.spent = 500 * index;
    const { at: _when, ...next } = trial(
      index,
      0.001,
      index > 2 ? { state: "repeated", sameAs: 1 } : {},
    );
    search.add({ ...next, record: null } as TrialUpdate);
  }
  expect(search.share).toBe(1);
  search.spent = 2300;
  search.add({ ...plain, confirmed: true, record: null } as TrialUpdate);
  const { trials, seconds, rate, confirming } = search.figures;
  expect([trials, seconds, rate]).toEqual([4, 2, 2]);
  expect(confirming).toBeCloseTo(0.3);
  expect(outcome(search.tried, search.trials)).toBe(
    "4 trials, 2 of them duplicates, 1 more from earlier searches",
  );
});
