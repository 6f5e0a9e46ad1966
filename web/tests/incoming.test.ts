import { expect, test, vi } from "vitest";
import { isForTrials, isFromWorker, isPicture, isRunResult } from "../src/python/incoming";

const picture = { url: "data:image/png;base64,", width: 1, height: 2, description: "" };

test.each([
  { type: "progress", stage: "Loading", fraction: 0.5 },
  { type: "loaded" },
  { type: "output", chunks: [], size: 0 },
  { type: "output", chunks: [{ stream: "stdout", text: "a" }], size: 1 },
  { type: "output", chunks: [{ stream: "stderr", text: "", picture }], size: 1000 },
  { type: "answer", id: 1, value: null },
  { type: "refusal", id: 1, message: "no" },
])("a message of ours: %j", (message) => expect(isFromWorker(message)).toBe(true));

test.each([
  null,
  undefined,
  "ready",
  7,
  [],
  {},
  { type: "toString" },
  { type: "__proto__" },
  { type: null },
  { type: "ready" },
  { type: "ready", runtime: null },
  { type: "output" },
  { type: "output", chunks: null, size: 1 },
  { type: "output", chunks: [null], size: 1 },
  { type: "output", chunks: [{ stream: "stdout" }], size: 1 },
  { type: "output", chunks: [{ stream: "dom", text: "" }], size: 1 },
  { type: "output", chunks: [{ stream: "stdout", text: "", picture: {} }], size: 1 },
  { type: "output", chunks: [{ stream: "stdout", text: "", html: {} }], size: 1 },
  { type: "output", chunks: [{ stream: "stdout", text: "", dropped: 5 }], size: 1 },
  {
    type: "output",
    chunks: [{ stream: "stdout", text: "", dropped: { lines: 0, characters: 0, pages: "1" } }],
    size: 1,
  },
  { type: "output", chunks: [], size: Number.NaN },
  { type: "answer" },
  { type: "refusal", id: "1", message: "" },
  { type: "progress", stage: 1, fraction: 1 },
])("no message of ours: %j", (message) => expect(isFromWorker(message)).toBe(false));

test("a picture has an address, a size and words", () => {
  expect(isPicture(picture)).toBe(true);
  expect(isPicture({ ...picture, height: "2" })).toBe(false);
  expect(isPicture(null)).toBe(false);
});

test("the page ignores what is no message of ours, says so once, and goes on", async () => {
  const { PythonSession } = await import("../src/python/client");
  let receive: (message: unknown) => void = () => undefined;
  const session = new PythonSession("", (receiver) => {
    receive = (message) => receiver.receive(message);
    return {} as never;
  });
  session.trials.connect = () => null as unknown as MessagePort;
  let told = 0;
  session.on("ignored", () => (told += 1));
  session.on("event", (_name, data) => void (data as { deep: { inside: 1 } }).deep.inside);
  session.launch();
  for (const message of [null, 7, { type: "answer" }, { type: "event", name: "x", data: null }])
    receive(message);
  expect(told).toBe(1);
  receive({ type: "progress", stage: "Loading NumPy", fraction: 1 });
  expect(session.progress).toEqual(["Loading NumPy", 1]);
  // Of the time before any program runs.
  const stored = vi.spyOn(await import("../src/python/snapshot"), "store").mockResolvedValue(true);
  const snapshot = (key: string) => ({ type: "snapshot", key, memory: new Uint8Array(1) });
  receive(snapshot("ours"));
  receive({ type: "ready", runtime: {} });
  receive(snapshot("forged"));
  receive({ type: "loaded" });
  receive(snapshot("forged"));
  receive({ type: "loaded" });
  expect(stored.mock.calls.map(([key]) => key)).toEqual(["ours"]);
  session.launch();
  receive({ type: "failed", message: "over" });
  expect(session.state).toBe("failed");
});

const result = {
  document: "program",
  ok: false,
  error: { kind: "E", message: "", text: "", diagnostics: [{ line: 1, column: 0, message: "" }] },
  elapsedMs: 1,
  modules: [{ id: "1", title: "", source: "" }],
  traces: [{ id: "1", title: "" }],
  programs: [{ id: "1", title: "" }],
  searchFunctions: ["f"],
  searchModules: [{ name: "m", functions: ["f"], model: false }],
};

test("a result of a run has all its parts", () => {
  expect(isRunResult(result)).toBe(true);
  expect(isRunResult({ ...result, ok: true, error: null })).toBe(true);
  for (const name of Object.keys(result))
    for (const odd of [undefined, 7, [null], [{}], {}])
      expect(isRunResult({ ...result, [name]: odd }), `${name}: ${JSON.stringify(odd)}`).toBe(
        name === "elapsedMs" && odd === 7,
      );
});

const workload = { calibration: {}, arrays: [] };

test.each([
  { type: "open", owner: 1, workload, workers: 2, limitMs: 10 },
  { type: "run", owner: 1, id: 1, job: {} },
  { type: "close", owner: 1 },
])("a message for trials: %j", (message) => expect(isForTrials(message)).toBe(true));

test.each([
  null,
  7,
  {},
  { type: "toString", owner: 1 },
  { type: "close" },
  { type: "open", owner: 1, workload, workers: Number.POSITIVE_INFINITY, limitMs: 10 },
  { type: "open", owner: 1, workload: null, workers: 1, limitMs: 10 },
  { type: "run", owner: 1, id: 1, job: null },
  { type: "run", owner: 1, id: 1, job: {}, reply: {} },
])("no message for trials: %j", (message) => expect(isForTrials(message)).toBe(false));
