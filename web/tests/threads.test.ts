import { expect, test, vi } from "vitest";
import type { EndThreadsMessage, StartThreadsMessage, ThreadMessage } from "../src/python/messages";
import { ThreadLauncher } from "../src/threads/launcher";
import { ThreadPool, type ThreadWorker } from "../src/threads/pool";
import { MAX_THREADS, Slots, State } from "../src/threads/slots";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const task = {
  kernel: 1,
  code: 0,
  codeBytes: 0,
  loop: 0,
  first: 0,
  last: 1,
  record: 0,
  scratch: 0,
};

class FakeWorker implements ThreadWorker {
  onerror: ((event: ErrorEvent) => void) | null = null;
  told: ThreadMessage[] = [];
  ended = false;

  postMessage(message: ThreadMessage): void {
    this.told.push(message);
  }

  terminate(): void {
    this.ended = true;
  }
}

function setUp(whenFree: () => Promise<unknown> = () => Promise.resolve()): {
  pool: ThreadPool;
  workers: FakeWorker[];
  slots: Slots;
  start: (first: number, count: number) => void;
} {
  const workers: FakeWorker[] = [];
  const pool = new ThreadPool(() => {
    workers.push(new FakeWorker());
    return workers.at(-1)!;
  }, whenFree);
  const slots = new Slots();
  const start = (first: number, count: number): void =>
    pool.start({ type: "startThreads", memory, slots: slots.memory, first, count });
  return { pool, workers, slots, start };
}

/** A launcher with nobody at the other end, the calls of its kernel's entry, and what it sent. */
function launcher(count: number, entry: (first: number, last: number, scratch: number) => void) {
  const sent: (StartThreadsMessage | EndThreadsMessage)[] = [];
  const threads = new ThreadLauncher((message) => sent.push(message), new Uint8Array(1));
  threads.provide(memory, count, 1024, 64);
  const run = (first: number, last: number, _record: number, scratch: number): void =>
    entry(first, last, scratch);
  const launch = threads.kernel(0, 0);
  const exports = { "parallel.0": run } as unknown as WebAssembly.Exports;
  return { sent, launch: (first: number, last: number) => launch(exports, 0, first, last, 8) };
}

test("a task is claimed once", () => {
  const slot = new Slots().at(3);
  expect(slot.claim()).toBe(false);
  slot.post(task);
  expect(slot.task()).toEqual(task);
  expect([slot.claim(), slot.claim(State.IDLE)]).toEqual([true, false]);
});

test("a failure comes back, however long its text", () => {
  const slot = new Slots().at(1);
  const text = "ä\n".repeat(2000);
  slot.fail({ name: "RuntimeError", message: "divide by zero", stack: text, check: 2, index: -1 });
  const { stack, ...rest } = slot.failure();
  expect(rest).toEqual({ name: "RuntimeError", message: "divide by zero", check: 2, index: -1 });
  expect(text.startsWith(stack)).toBe(true);
});

test("the caller runs all that no thread has begun, in order, with its own scratch memory", () => {
  const calls: number[][] = [];
  const { sent, launch } = launcher(3, (...call) => calls.push(call));
  launch(2, 10);
  expect(calls).toEqual([
    [2, 5, 1024],
    [5, 8, 1024],
    [8, 10, 1024],
  ]);
  launch(4, 4);
  launch(-1, 1);
  expect(calls.slice(3)).toEqual([
    [-1, 0, 1024],
    [0, 1, 1024],
  ]);
  expect(sent).toMatchObject([{ type: "startThreads", first: 1, count: 3 }]);
});

test("the first error is thrown, and nothing is begun after it", () => {
  const begun: number[] = [];
  const { launch } = launcher(4, (first) => {
    begun.push(first);
    if (first >= 1) throw new Error(`in ${first}`);
  });
  expect(() => launch(0, 4)).toThrow("in 1");
  expect(begun).toEqual([0, 1]);
});

test("the page starts no more threads than there are slots", () => {
  const { workers, start } = setUp();
  start(1, 3);
  start(3, 1000);
  expect(workers.length).toBe(MAX_THREADS - 1);
  expect(new Set(workers.map(({ told }) => told[0]!.lock)).size).toBe(workers.length);
});

test("threads have ended once their locks are free", async () => {
  let free = (): void => undefined;
  const { pool, workers, slots, start } = setUp(() => new Promise<void>((then) => (free = then)));
  const told = vi.spyOn(Atomics, "notify");
  start(1, 2);
  const end = pool.end();
  expect([workers[0]!.ended, pool.ending, told.mock.calls.length]).toEqual([true, true, 0]);
  free();
  await end;
  expect([pool.ending, told.mock.calls.length]).toEqual([false, 1]);
  slots.waitForEnd(0);
  told.mockRestore();
});

test("a thread that dies fails its task", () => {
  const { workers, slots, start } = setUp();
  start(1, 2);
  slots.at(1).post(task);
  slots.at(1).claim();
  workers[0]!.onerror?.({ message: "out of memory" } as ErrorEvent);
  expect(slots.at(1).state).toBe(State.FAILED);
  expect(slots.at(1).failure().message).toBe("a thread failed: out of memory");
});
