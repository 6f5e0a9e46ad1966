import { expect, test } from "vitest";
import { bounded } from "../src/document/memory";
import { moment, Recorder, type RunRecord, recordOf, replay } from "../src/document/record";
import type { OutputChunk, RunResult } from "../src/python/protocol";

const run = (cell: string, size: number, at = 0): RunRecord => ({
  cell,
  source: "x".repeat(size),
  ok: true,
  elapsedMs: 1,
  at,
  output: [],
  notes: [],
  error: null,
  modules: [],
});

test("of many runs the last ones are kept, and the last of each cell", () => {
  const runs = [run("1", 1), ...Array.from({ length: 50 }, (_, at) => run("2", 1, at))];
  const kept = bounded(runs);
  expect(kept).toHaveLength(32);
  expect(kept[0]!.cell).toBe("1");
  expect(kept[1]!.at).toBe(19);
  expect(kept.at(-1)!.at).toBe(49);
});

test("long runs leave room for fewer", () => {
  const runs = Array.from({ length: 5 }, (_, at) => run("1", 600_000, at));
  expect(bounded(runs).map(({ at }) => at)).toEqual([2, 3, 4]);
  expect(bounded([run("1", 5_000_000)])).toHaveLength(1);
});

test("what a run printed is shown again as it was", () => {
  const shown: unknown[] = [];
  const sink = {
    append: (chunks: OutputChunk[]) => shown.push(...chunks.map(({ text }) => text)),
    note: (text: string) => shown.push(text),
    error: () => shown.push("error"),
  };
  const recorder = new Recorder(sink);
  recorder.append([{ stream: "stdout", text: "one\n" }]);
  recorder.append([{ stream: "stderr", text: "two\n" }]);
  recorder.note("Finished", "done");
  recorder.note("Python was restarted", "warning");
  shown.length = 0;
  const result = { ok: true, error: null, elapsedMs: 2, modules: [] } as unknown as RunResult;
  replay(recordOf("1", "source", result, recorder), sink);
  expect(shown).toEqual(["one\n", "two\n", "Python was restarted"]);
});

test("a moment of another day is told with the day", () => {
  const noon = new Date(2026, 10, 22, 12, 5).getTime();
  expect(moment(noon, noon + 3600_000)).toBe("at 12:05");
  expect(moment(noon, noon + 24 * 3600_000)).toBe("on 22 Nov at 12:05");
});
