import { expect, test } from "vitest";
import { lineDiff } from "../src/document/compare";
import { timesText } from "../src/document/history";
import {
  parseNotebook,
  rewritten,
  runsOf,
  withAttachments,
  withOutputs,
  withoutOutputs,
} from "../src/document/jupyter";
import { bounded } from "../src/document/memory";
import { moment, Recorder, type RunRecord, recordOf, replay } from "../src/document/record";
import { isFromWorker } from "../src/python/incoming";
import type { OutputChunk } from "../src/python/messages";
import type { RunResult } from "../src/python/wire";

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

test("a notebook's outputs become runs, and runs its outputs again", () => {
  const outputs = [
    { output_type: "stream", name: "stdout", text: ["one\n", "two\n"] },
    {
      output_type: "display_data",
      metadata: {},
      data: { "text/plain": "a figure", "image/png": "AAAA" },
    },
    {
      output_type: "display_data",
      metadata: {},
      data: { "text/plain": "HTML", "text/html": "<b>bold</b>" },
    },
    { output_type: "error", ename: "ValueError", evalue: "no", traceback: ["line 1", "line 2"] },
  ];
  const text = JSON.stringify({
    cells: [
      { cell_type: "markdown", metadata: { a: 1 }, source: "# Title" },
      { cell_type: "code", metadata: {}, execution_count: 7, source: ["x = 1\n", "x"], outputs },
      { cell_type: "code", metadata: {}, execution_count: 8, source: "y", outputs: [] },
    ],
    metadata: { kernelspec: { name: "python3" } },
    nbformat: 4,
    nbformat_minor: 5,
  });
  const notebook = parseNotebook(text);
  const runs = runsOf(notebook, 5);
  expect(runs).toHaveLength(1);
  expect(runs[0]).toMatchObject({ cell: "1", source: "x = 1\nx", ok: false, at: 5 });
  const stored = parseNotebook(withoutOutputs(notebook));
  expect(JSON.stringify(stored)).not.toContain("bold");
  const back = parseNotebook(withOutputs(stored, (cell) => runs.find((run) => run.cell === cell)));
  expect(back.cells[0]).toEqual(notebook.cells[0]);
  expect(back.metadata).toEqual(notebook.metadata);
  expect(back.cells[1]!.outputs).toEqual(outputs);
  expect(back.cells[2]!.outputs).toEqual([]);
  // As a run of the page would leave them.
  const again = parseNotebook(withOutputs(stored, () => ({ ...runs[0]!, file: undefined })));
  expect(again.cells[1]!.outputs).toEqual([
    { output_type: "stream", name: "stdout", text: "one\ntwo\n" },
    ...outputs.slice(1),
  ]);
});

/** The run that a notebook's cell with one output brings along. */
function runWith(output: object): RunRecord {
  const cell = { cell_type: "code", source: "x", outputs: [output] };
  return runsOf(parseNotebook(JSON.stringify({ cells: [cell] })), 0)[0]!;
}

test("of the forms of an output the one that says most is shown, and all are kept", () => {
  const shown = (data: Record<string, unknown>): OutputChunk =>
    runWith({ output_type: "execute_result", data }).output[0]!;
  const plain = "<Something>";
  expect(shown({ "text/plain": plain, "image/png": ["AA\n", "AA"] }).picture).toMatchObject({
    url: "data:image/png;base64,AAAA",
    description: plain,
  });
  const jpeg = shown({ "text/plain": plain, "image/jpeg": 'AA\nA"A' }).html;
  expect(jpeg).toBe('<img src="data:image/jpeg;base64,AAAA">');
  expect(shown({ "text/plain": plain, "image/svg+xml": ["<svg>", "</svg>"] }).html).toBe(
    "<svg></svg>",
  );
  expect(shown({ "text/plain": plain, "text/markdown": "**bold**" }).text).toBe("**bold**\n");
  expect(shown({ "text/plain": "x", "text/latex": "$x$" }).text).toBe("x\n");
  const output = {
    output_type: "execute_result",
    execution_count: 3,
    data: { "text/plain": plain, "application/json": { a: [1] } },
    metadata: { "application/json": { expanded: true } },
  };
  const run = runWith(output);
  const notebook = parseNotebook(JSON.stringify({ cells: [{ cell_type: "code", source: "x" }] }));
  expect(JSON.parse(withOutputs(notebook, () => run)).cells[0].outputs).toEqual([output]);
  expect(runWith({ output_type: "stream", name: "stdout", text: "a\n" }).file).toBeUndefined();
});

test("a text cell shows the pictures that are attached to it", () => {
  const attachments = { "a b.png": { "image/png": "AA\nAA" }, odd: null, empty: {} };
  const cell = { cell_type: "markdown", id: "t", source: "", attachments };
  const shown = (text: string): string => withAttachments(text, cell);
  expect(shown("![a](attachment:a%20b.png) b")).toBe("![a](data:image/png;base64,AAAA) b");
  for (const text of ["attachment:odd", "attachment:empty", "attachment:toString", "attachment:%"])
    expect(shown(text)).toBe(text);
  expect(withAttachments("![](attachment:x)", undefined)).toBe("![](attachment:x)");
});

const CODE = { cell_type: "code", source: ["x = 1"] };

test("what is no notebook is refused, and what is no cell left out", () => {
  for (const text of ["", "{}", '{"cells": 1}'])
    expect(() => parseNotebook(text)).toThrow("Not a Jupyter notebook");
  const old = { nbformat: 3, worksheets: [{ cells: [] }] };
  expect(() => parseNotebook(JSON.stringify(old))).toThrow("version 3; `jupyter nbconvert");
  const damaged = { cells: [null, 1, { cell_type: "code", source: [2] }, CODE], nbformat: 4 };
  expect(parseNotebook(JSON.stringify(damaged)).cells).toEqual([{ ...CODE, id: "1" }]);
});

/** Numbers from 0 to below `limit`, the same in every run. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

const ODD = [null, 0, -1.5, true, "", "text", [], {}, [null], [[]], { text: 1 }, 1e300];

/** A value with one of its parts in the place of which something odd stands. */
function damaged(value: unknown, below: (limit: number) => number): unknown {
  const parts = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (!parts.length || below(6) === 0) return ODD[below(ODD.length)];
  const part = parts[below(parts.length)]!;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<
    string,
    unknown
  >;
  copy[part] = damaged(copy[part], below);
  return copy;
}

test("a notebook that is damaged anywhere is refused, or read without the damaged cells", () => {
  const outputs = [
    { output_type: "stream", name: "stdout", text: ["one\n"] },
    { output_type: "display_data", data: { "text/plain": "a", "image/png": ["AA", "AA"] } },
    { output_type: "display_data", data: { "text/html": "<b>bold</b>", "application/json": {} } },
    { output_type: "error", ename: "ValueError", evalue: "no", traceback: ["line 1"] },
  ];
  const cell = { cell_type: "code", execution_count: 7, metadata: {}, source: ["x"], outputs };
  const whole = { cells: [cell, { cell_type: "markdown", source: "# Title" }], nbformat: 4 };
  let read = 0;
  for (let seed = 0; seed < 3000; seed += 1) {
    const below = numbers(seed);
    let text = JSON.stringify(damaged(damaged(whole, below), below));
    if (seed % 10 === 0) text = text.slice(0, below(text.length));
    let notebook: ReturnType<typeof parseNotebook>;
    try {
      notebook = parseNotebook(text);
    } catch (error) {
      expect((error as Error).message).toContain("Not a Jupyter notebook");
      continue;
    }
    read += 1;
    const runs = runsOf(notebook, 0);
    for (const { source, output, error } of runs) {
      expect([source, error?.kind ?? "", error?.message ?? ""].map((each) => typeof each)).toEqual(
        Array(3).fill("string"),
      );
      expect(isFromWorker({ type: "output", chunks: output, size: 1 })).toBe(true);
    }
    parseNotebook(withOutputs(notebook, (name) => runs.find((each) => each.cell === name)));
    parseNotebook(withoutOutputs(notebook));
  }
  expect(read).toBeGreaterThan(1000);
});

test("two texts are compared line by line", () => {
  const shown = (before: string, after: string): string =>
    lineDiff(before, after)
      .map(
        ({ kind, text }) => `${{ same: " ", added: "+", removed: "-", shifted: "~" }[kind]}${text}`,
      )
      .join("|");
  expect(shown("a\nb\nc\nd\n", "a\nc\nx\nd\n")).toBe(" a|-b| c|+x| d");
  expect(shown("", "a\n")).toBe("+a");
  expect(shown("a", "a\n")).toBe(" a");
  expect(shown("a\na\n", "a\n")).toBe(" a|-a");
});

test("two runs are compared by their times", () => {
  const took = (elapsedMs: number, ok = true): RunRecord => ({ ...run("1", 1), elapsedMs, ok });
  expect(timesText(took(2000), took(1000))).toMatch(/: 2\.0× faster\.$/);
  expect(timesText(took(1000), took(1500))).toMatch(/: 1\.5× slower\.$/);
  expect(timesText(took(1000), took(1010))).not.toMatch(/×/);
  expect(timesText(took(1000, false), took(1))).toBe("The earlier one failed.");
});

test("every cell has a name of its own, and keeps it", () => {
  const cell = (id: unknown, cell_type = "code"): object => ({ cell_type, id, source: "" });
  const cells = [cell("1"), cell(undefined), cell("1"), cell(7, "markdown"), cell("own")];
  const { cells: named } = parseNotebook(JSON.stringify({ cells }));
  expect(named.map(({ id }) => id)).toEqual(["1", "2", "3", "text-1", "own"]);
  const again = parseNotebook(JSON.stringify({ cells: named }));
  expect(again.cells).toEqual(named);
  const old = JSON.stringify({ cells: named, nbformat: 4, nbformat_minor: 2 });
  expect(JSON.parse(withOutputs(parseNotebook(old), () => undefined)).nbformat_minor).toBe(5);
});

test("a cell of another kind has the fields of that kind", () => {
  const code = {
    cell_type: "code",
    id: "a",
    metadata: { tags: ["t"] },
    source: "x",
    outputs: [{}],
  };
  const text = rewritten(code as never, "text", "# One\ntwo");
  expect(text).toEqual({
    cell_type: "markdown",
    id: "a",
    metadata: { tags: ["t"] },
    source: ["# One\n", "two"],
  });
  expect(rewritten(text, "code", "")).toEqual({
    ...text,
    cell_type: "code",
    source: [],
    outputs: [],
    execution_count: null,
  });
  expect(rewritten({ ...text, cell_type: "raw" }, "text", "r").cell_type).toBe("raw");
});

test("cells of odd kinds have names of their own", () => {
  const cell = { cell_type: "__proto__", source: "" };
  const code = { cell_type: "code", source: "" };
  const { cells } = parseNotebook(JSON.stringify({ cells: [cell, cell, code, code, cell] }));
  expect(cells.map(({ id }) => id)).toEqual(["text-1", "text-2", "1", "2", "text-3"]);
});

test("of a traceback that a notebook brings along the end is shown", () => {
  const outputs = [{ output_type: "error", ename: "E", traceback: ["x".repeat(100_000), "end"] }];
  const text = JSON.stringify({ cells: [{ cell_type: "code", source: "", outputs }] });
  const [run] = runsOf(parseNotebook(text), 0);
  expect(run!.error!.text).toMatch(/^… 80,004 characters are left out …\nx+\nend$/);
});

test("a damaged number of a notebook's format is replaced", () => {
  const notebook = parseNotebook('{"cells": [], "nbformat": 4, "nbformat_minor": "five"}');
  expect(JSON.parse(withOutputs(notebook, () => undefined)).nbformat_minor).toBe(5);
});
