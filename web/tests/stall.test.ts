import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PythonSession } from "../src/python/client";
import type { Connection, Receiver } from "../src/python/connection";
import { listenToDownloads } from "../src/python/downloads";
import type { RuntimeFacts } from "../src/python/messages";
import { StallWatch } from "../src/python/stall";

const told: (string | null)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  told.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

const watching = (): StallWatch => new StallWatch((complaint) => told.push(complaint));

test("a step without progress is named when its limit is over", () => {
  const watch = watching();
  watch.progress("Loading Python");
  vi.advanceTimersByTime(59_999);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(told).toEqual(["Loading Python: no progress for 60 s"]);
});

test("progress counts, not the time in all", () => {
  const watch = watching();
  for (let seconds = 0; seconds < 3600; seconds += 50) {
    watch.progress("Loading Python");
    vi.advanceTimersByTime(50_000);
  }
  expect(told).toEqual([]);
});

test("a step that is long at work without a sign has a limit of its own", () => {
  const watch = watching();
  watch.progress("Loading mlcweb");
  vi.advanceTimersByTime(179_000);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(told).toEqual(["Loading mlcweb: no progress for 180 s"]);
});

test("a complaint is withdrawn when the step gets on, and comes again", () => {
  const watch = watching();
  watch.progress("Loading Python");
  vi.advanceTimersByTime(60_000);
  watch.progress("Loading Python");
  expect(told.at(-1)).toBeNull();
  vi.advanceTimersByTime(60_000);
  expect(told.at(-1)).toBe("Loading Python: no progress for 60 s");
  watch.stop();
  expect(watch.complaint).toBeNull();
});

test("a download tells of its parts, now and then", async () => {
  vi.useRealTimers();
  let time = 0;
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const parts = writable.getWriter();
  const scope = { fetch: () => Promise.resolve(new Response(readable)) } as { fetch: typeof fetch };
  const plain = scope.fetch;
  const heard: number[] = [];
  const restore = listenToDownloads(
    scope,
    () => heard.push(time),
    () => time,
  );
  const read = (await scope.fetch("file")).body!.getReader();
  expect(heard).toEqual([0]);
  for (time = 200; time <= 1200; time += 200) {
    void parts.write(new Uint8Array(4));
    expect((await read.read()).value).toEqual(new Uint8Array(4));
  }
  expect(heard).toEqual([0, 600, 1200]);
  restore();
  expect(scope.fetch).toBe(plain);
});

/** A session whose Python says what the test has it say. */
function started(): { session: PythonSession; python: () => Receiver; ended: () => number } {
  const receivers: Receiver[] = [];
  let ends = 0;
  const session = new PythonSession("/", (receiver, _base, trials) => {
    trials.close();
    receivers.push(receiver);
    return { grace: 0, end: () => (ends += 1) } as unknown as Connection;
  });
  session.on("stalled", (complaint) => told.push(complaint));
  session.launch();
  return { session, python: () => receivers.at(-1)!, ended: () => ends };
}

const READY = { type: "ready", runtime: {} as RuntimeFacts } as const;

test("a worker whose script never comes is named", () => {
  const { session } = started();
  vi.advanceTimersByTime(60_000);
  expect(session.complaint).toBe("Starting the worker: no progress for 60 s");
});

test("a session that hangs can be tried again, and then is ready", () => {
  const { session, python, ended } = started();
  python().receive({ type: "progress", stage: "Loading mlcweb", fraction: 0.7 });
  vi.advanceTimersByTime(180_000);
  expect(session.complaint).toBe("Loading mlcweb: no progress for 180 s");
  session.restart("Python was started again.");
  expect(ended()).toBe(1);
  expect(session.complaint).toBeNull();
  python().receive(READY);
  vi.advanceTimersByTime(3_600_000);
  expect([session.state, session.complaint]).toEqual(["ready", null]);
});

test("what comes behind a ready Python is watched until it is there", () => {
  const { session, python } = started();
  python().receive(READY);
  python().receive({ type: "progress", stage: "Loading NumPy", fraction: 1 });
  vi.advanceTimersByTime(120_000);
  expect([session.state, session.complaint]).toEqual([
    "ready",
    "Loading NumPy: no progress for 120 s",
  ]);
  python().receive({ type: "loaded" });
  expect(told.at(-1)).toBeNull();
});

test("a Python that failed is complained of, however long ago", () => {
  const { session, python } = started();
  python().fail("no memory");
  vi.advanceTimersByTime(3_600_000);
  expect(session.complaint).toBe("Python did not load: no memory");
});
