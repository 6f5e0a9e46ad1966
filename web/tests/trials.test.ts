import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FromTrialWorker, ToTrialWorker } from "../src/python/messages";
import type { TrialJob, TrialSuccess, TrialWorkload } from "../src/python/wire";
import { agrees, calibrationTimer, type KernelHost, layOut, runKernel } from "../src/trials/kernel";
import { TrialLine } from "../src/trials/line";
import { TrialPool, type TrialWorker } from "../src/trials/pool";
import { failures, place, type Trial } from "../src/views/search/trials";

/** A worker that is up at once and keeps what it is told; the test answers in its name. */
class FakeWorker implements TrialWorker {
  onmessage: ((event: MessageEvent<FromTrialWorker>) => void) | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;
  onmessageerror = null;
  told: ToTrialWorker[] = [];
  ended = false;

  constructor() {
    queueMicrotask(() => this.say({ type: "up" }));
  }

  postMessage(message: ToTrialWorker): void {
    this.told.push(message);
  }

  terminate(): void {
    this.ended = true;
  }

  say(message: FromTrialWorker): void {
    this.onmessage?.({ data: message } as MessageEvent<FromTrialWorker>);
  }

  succeed(seconds: number): void {
    this.say({
      type: "outcome",
      outcome: { ok: true, seconds: [seconds], calibration: [], arrays: undefined },
    });
  }

  get jobs(): string[] {
    return this.told.flatMap((message) => (message.type === "run" ? [message.job.entry] : []));
  }
}

const calibration = { code: new Uint8Array(), iterations: 1, minMs: 0 };
const workload: TrialWorkload = { calibration, arrays: [] };
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

function job(entry: string): TrialJob {
  const timing = { batches: 1, fewest: 1, minMs: 1, enoughMs: 1, earlyStopMs: Infinity };
  return { code: new Uint8Array(), entry, repeated: "", scratchBytes: 0, ...timing };
}

function setUp(workers: number): { pool: TrialPool; made: FakeWorker[] } {
  const made: FakeWorker[] = [];
  const pool = new TrialPool(() => {
    const worker = new FakeWorker();
    made.push(worker);
    return worker;
  });
  pool.open(1, workload, workers, 1000);
  return { pool, made };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("workers start when needed, learn the workload once, and take turns", async () => {
  const { pool, made } = setUp(2);
  expect(made).toHaveLength(0);
  const outcomes = ["a", "b", "c"].map((name) => pool.run(1, job(name)));
  await settled();
  expect(made.map(({ jobs }) => jobs)).toEqual([["a"], ["b"]]);
  made[1]!.succeed(2);
  await settled();
  made[1]!.succeed(3);
  made[0]!.succeed(1);
  expect(await Promise.all(outcomes)).toMatchObject([
    { seconds: [1] },
    { seconds: [2] },
    { seconds: [3] },
  ]);
  expect(made.map(({ told }) => told.map(({ type }) => type))).toEqual([
    ["workload", "run"],
    ["workload", "run", "run"],
  ]);
});

test("there are no more workers than the page can bear, however many are asked for", async () => {
  const { pool, made } = setUp(1e9);
  for (let i = 0; i < 100; i += 1) void pool.run(1, job("a"));
  await settled();
  expect(made).toHaveLength(64);
  pool.stop();
});

test("what is no message of the line is ignored, and told", async () => {
  vi.useRealTimers();
  const told = await new Promise<string>((resolve) => {
    const pool = new TrialPool(
      () => new FakeWorker(),
      () => resolve("ignored"),
    );
    pool.connect().postMessage(null);
  });
  expect(told).toBe("ignored");
});

test("a program that replaces how messages are read sees none of them, nor the port", async () => {
  vi.useRealTimers();
  const { port1, port2 } = new MessageChannel();
  const line = new TrialLine(port2);
  const seen = vi.spyOn(MessageEvent.prototype, "data", "get");
  const outcome = line.run(1, job("a"));
  port1.postMessage({ id: 1, outcome: { ok: true } });
  expect(await outcome).toEqual({ ok: true });
  expect(seen).not.toHaveBeenCalled();
  seen.mockRestore();
  port1.close();
});

test("a kernel that hangs costs itself; the next one gets a new worker", async () => {
  const { pool, made } = setUp(1);
  const hanging = pool.run(1, job("hangs"));
  const next = pool.run(1, job("next"));
  await vi.advanceTimersByTimeAsync(1001);
  expect(await hanging).toMatchObject({
    ok: false,
    kind: "TimeoutError",
    message: "no result within 1 s",
  });
  expect(made.map(({ ended }) => ended)).toEqual([true, false]);
  made[1]!.succeed(1);
  expect(await next).toMatchObject({ ok: true });
});

test("a worker that fails costs one trial, with the reason", async () => {
  const { pool, made } = setUp(1);
  const lost = pool.run(1, job("lost"));
  const next = pool.run(1, job("next"));
  await settled();
  made[0]!.onerror?.({ message: "out of memory" } as ErrorEvent);
  expect(await lost).toMatchObject({
    kind: "WorkerDied",
    message: "the worker failed: out of memory",
  });
  await settled();
  made[1]!.succeed(1);
  expect(await next).toMatchObject({ ok: true });
});

test("a failed kernel leaves its worker alone", async () => {
  const { pool, made } = setUp(1);
  const outcome = pool.run(1, job("traps"));
  await settled();
  const trap = { ok: false, kind: "RuntimeError", message: "unreachable", stack: "" } as const;
  made[0]!.say({ type: "outcome", outcome: trap });
  expect(await outcome).toEqual(trap);
  expect(made[0]!.ended).toBe(false);
});

test("stop ends everything at once, also what starts or waits, until the pool is opened again", async () => {
  const { pool, made } = setUp(1);
  const under = [pool.run(1, job("starts")), pool.run(1, job("waits"))];
  pool.stop();
  expect(await Promise.all([...under, pool.run(1, job("late"))])).toMatchObject(
    Array(3).fill({ ok: false, kind: "Stopped" }),
  );
  expect(made.every(({ ended }) => ended)).toBe(true);
  pool.open(1, workload, 1, 1000);
  const again = pool.run(1, job("again"));
  await settled();
  made.at(-1)!.succeed(1);
  expect(await again).toMatchObject({ ok: true });
});

test("owners have workloads of their own, and each is closed alone", async () => {
  const { pool, made } = setUp(1);
  const other: TrialWorkload = { calibration, arrays: [] };
  pool.open(2, other, 1, 1000);
  const first = pool.run(1, job("a"));
  const second = pool.run(2, job("b"));
  await settled();
  pool.close(1);
  expect(await first).toMatchObject({ kind: "Stopped" });
  await settled();
  const last = made.at(-1)!;
  expect(last.jobs).toEqual(["b"]);
  expect(last.told).toContainEqual({ type: "workload", workload: other });
  last.succeed(1);
  expect(await second).toMatchObject({ ok: true });
  expect(await pool.run(1, job("late"))).toMatchObject({ kind: "Stopped" });
  pool.close(2);
  expect(last.ended).toBe(true);
});

test("Python's end of the line gets each answer for its own call", async () => {
  vi.useRealTimers();
  const { pool, made } = setUp(2);
  const port = pool.connect();
  const line = new TrialLine(port);
  line.open(1, workload, 2, 1000);
  const outcomes = [line.run(1, job("a")), line.run(1, job("b"))];
  await vi.waitFor(() => expect(made.map(({ jobs }) => jobs)).toEqual([["a"], ["b"]]));
  made[1]!.succeed(2);
  made[0]!.succeed(1);
  expect(await Promise.all(outcomes)).toMatchObject([{ seconds: [1] }, { seconds: [2] }]);
  const stopped = line.run(1, job("c"));
  line.close(1);
  expect(await stopped).toMatchObject({ kind: "Stopped" });
  port.close();
});

test("buffers lie aligned and apart, above the null page", () => {
  expect(layOut([4, 64, 0, 65])).toEqual([[4096, 4160, 4224, 4288], 4416]);
  // Pages alike would be taken for one another by loads that follow stores.
  const [addresses] = layOut([65536, 65536, 65536]);
  expect(addresses.map((address) => address % 4096)).toEqual([0, 1088, 2176]);
});

test("floating results may be off by the tolerance, others by nothing", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const bytes = (numbers: ArrayLike<number> & ArrayBufferView): Uint8Array =>
    new Uint8Array(numbers.buffer);
  const check = (found: Uint8Array, dtype: string, expected?: Uint8Array): boolean => {
    new Uint8Array(memory.buffer).set(found, 4096);
    return agrees(memory, 4096, { dtype, input: found, expected, tolerance: 0.1 });
  };
  const floats = (...numbers: number[]): Uint8Array => bytes(new Float32Array(numbers));
  const ints = (...numbers: number[]): Uint8Array => bytes(new Int32Array(numbers));
  expect(check(floats(1, 2), "float32", floats(1.05, 2))).toBe(true);
  expect(check(floats(1, 2), "float32", floats(1.2, 2))).toBe(false);
  expect(check(floats(NaN, 2), "float32", floats(1, 2))).toBe(false);
  expect(check(bytes(new Float64Array([1])), "float64", bytes(new Float64Array([1.01])))).toBe(
    true,
  );
  expect(check(ints(7, 8), "int32", ints(7, 8))).toBe(true);
  expect(check(ints(7, 8), "int32", ints(7, 9))).toBe(false);
  expect(check(floats(1), "float32")).toBe(false);
});

/** Exports `run`, which adds 1 to what lies at its first argument, and `repeat`, which runs it so often. */
const COUNTS = Uint8Array.from(
  atob(
    "AGFzbQEAAAABDAJgAn9/AGADf39/AAIPAQNlbnYGbWVtb3J5AgABAwMCAAEHEAIDcnVuAAAGcmVwZWF0AAEKJgIPACAAIAAoAgBBAWo2AgALFAADQCABIAIQACAAQQFrIgANAAsL",
  ),
  (letter) => letter.charCodeAt(0),
);

/** What comes of a kernel whose calls take so many milliseconds, and how often it was called. */
function timed(
  calls: number[],
  earlyStopMs: number,
  enoughMs = 1e3,
): Partial<TrialSuccess> & { called: number } {
  let now = 0;
  const readings = calls.flatMap((taken) => {
    const start = now;
    now += taken;
    return [start, now];
  });
  const clock = vi.spyOn(performance, "now").mockImplementation(() => readings.shift() ?? now);
  const host: KernelHost = { timer: () => () => 0.25 };
  const memory = new WebAssembly.Memory({ initial: 1 });
  const bytes = (number: number): Uint8Array => new Uint8Array(new Int32Array([number]).buffer);
  const array = { dtype: "int32", input: bytes(0), expected: bytes(1), tolerance: 0 };
  const timing = { batches: 3, fewest: 2, minMs: 1, enoughMs, earlyStopMs };
  const counts = { code: COUNTS, entry: "run", repeated: "repeat", scratchBytes: 0, ...timing };
  const readingsOfPace = [0.5, 0.4, 0.7, 0.6];
  const { seconds, calibration, arrays } = runKernel(
    host,
    () => readingsOfPace.shift()!,
    memory,
    [array],
    counts,
  );
  clock.mockRestore();
  return { seconds, calibration, arrays, called: new Int32Array(memory.buffer, 4096)[0]! };
}

test("a kernel far slower than the best has its first calls only, and what they left is looked at", () => {
  expect(timed([512, 64, 128, 256, 1], 50)).toEqual({
    seconds: [0.064],
    calibration: [],
    called: 4,
  });
});

test("a kernel within the limit is timed as ever, also where its first calls were not", () => {
  const whole = { seconds: [0.25, 0.25, 0.25], calibration: [0.5, 0.4, 0.7, 0.6] };
  expect(timed([40], 50)).toEqual({ ...whole, called: 1 });
  expect(timed([70, 60, 50], 50)).toEqual({ ...whole, called: 3 });
  expect(timed([1e6], Infinity)).toEqual({ ...whole, called: 1 });
});

test("of a kernel with long batches there are no more than the fewest", () => {
  expect(timed([40], 50, 400)).toEqual({
    seconds: [0.25, 0.25],
    calibration: [0.5, 0.4, 0.7],
    called: 1,
  });
});

test("a kernel may take a buffer of its own in place of one that all share", () => {
  const bytes = (number: number): Uint8Array => new Uint8Array(new Int32Array([number]).buffer);
  const shared = [1, 2].map((number) => ({ dtype: "int32", input: bytes(number), tolerance: 0 }));
  const array = { dtype: "int32", input: bytes(5), tolerance: 0 };
  const timing = { batches: 1, fewest: 1, minMs: 0, enoughMs: 1, earlyStopMs: Infinity };
  const counts = { code: COUNTS, entry: "run", repeated: "repeat", scratchBytes: 0, ...timing };
  const { arrays } = runKernel(
    { timer: () => () => 1 },
    () => 1,
    new WebAssembly.Memory({ initial: 1 }),
    shared,
    { ...counts, replaced: [{ index: 0, array }] },
  );
  expect(arrays!.map((left) => new Int32Array(left.buffer)[0])).toEqual([6, 2]);
  expect(shared[0]!.input).toEqual(bytes(1));
});

test("a clock too coarse for the fixed work done once reads zero then, and the work is not done for ever", () => {
  const asked: number[] = [];
  const host: KernelHost = {
    // A turn takes a quarter of a millisecond; the clock counts whole milliseconds.
    timer: () => (turns) => {
      asked.push(turns);
      return Math.floor(turns * 0.25) * 1e-3;
    },
  };
  const calibrate = calibrationTimer(host, { code: COUNTS, iterations: 1, minMs: 20 });
  expect(calibrate()).toBeCloseTo(0.25e-3, 5);
  expect(asked[0]).toBe(1);
  expect(asked.at(-1)).toBeGreaterThanOrEqual(80);
  expect(Math.max(...asked)).toBeLessThanOrEqual(160);
});

test("an interruption does not leave the clock too little work", () => {
  const interruptions = [50];
  const host: KernelHost = {
    timer: () => (turns) => Math.floor(turns * 0.25 + (interruptions.pop() ?? 0)) * 1e-3,
  };
  const calibrate = calibrationTimer(host, { code: COUNTS, iterations: 1, minMs: 20 });
  expect(calibrate()).toBeCloseTo(0.05, 5);
  expect(calibrate()).toBeCloseTo(0.25e-3, 5);
});

function trial(index: number, more: Partial<Trial> = {}): Trial {
  const nothing = {
    reason: null,
    sameAs: null,
    confirmed: false,
    decisions: [],
    space: 0,
    predicted: null,
    round: 0,
    at: 0,
  };
  return { index, state: "measured", seconds: 1, ...nothing, ...more };
}

test("trials are placed by their index, and a confirmed one replaces the first but for what it leaves out", () => {
  const trials: Trial[] = [];
  for (const [at, index] of [1, 0, 3, 2].entries())
    place(trials, { ...trial(index, { decisions: ["[4]"] }), labels: null, record: null }, at);
  const told = trial(1, { seconds: 5, confirmed: true });
  place(trials, { ...told, decisions: null, space: null, labels: null, record: null }, 9);
  expect(trials.map(({ index, seconds, at }) => [index, seconds, at])).toEqual([
    [0, 1, 1],
    [1, 5, 0],
    [2, 1, 3],
    [3, 1, 2],
  ]);
  expect(trials[1]).toMatchObject({ confirmed: true, decisions: ["[4]"], space: 0 });
});

test("failures are counted by their reason", () => {
  const failed = (index: number, reason: string): Trial =>
    trial(index, { state: "failed", seconds: null, reason });
  const trials = [
    failed(0, "trap"),
    failed(1, "hang"),
    trial(2),
    failed(3, "hang"),
    trial(4, { sameAs: 2 }),
    trial(5, { state: "recalled" }),
  ];
  expect(failures(trials)).toEqual([
    { reason: "hang", count: 2, first: 1 },
    { reason: "trap", count: 1, first: 0 },
  ]);
});
