import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PythonSession, Stopped } from "../src/python/client";
import type { Connection } from "../src/python/connection";

/** A session whose Python is there, runs one program and never answers it. */
function running(way: Partial<Connection>): { stopped: Promise<unknown>; session: PythonSession } {
  const session = new PythonSession("", (receiver) => {
    queueMicrotask(() => {
      receiver.receive({ type: "ready", runtime: {} });
      receiver.receive({ type: "loaded" });
    });
    const nothing = (): void => undefined;
    const rest = { own: true, grace: 1000, seen: nothing, allow: nothing, post: nothing };
    return { ...rest, interrupt: () => true, makeWay: () => false, end: nothing, ...way };
  });
  session.trials.connect = () => null as unknown as MessagePort;
  session.launch();
  const stopped = session.call("cell.execute", "while True: pass").catch((error: unknown) => error);
  return { session, stopped };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([
  ["in a worker of this page", { grace: 1000 }, 1000],
  ["of another frame, whose page waits first", { grace: 5000 }, 5000],
  ["that nothing interrupts", { interrupt: () => false }, 0],
])("Stop ends a program %s that hears no interrupt", async (_where, way, milliseconds) => {
  const ended = vi.fn();
  const { session, stopped } = running({ ...way, end: ended });
  await vi.advanceTimersByTimeAsync(0);
  expect(session.busy).toBe(true);
  void session.stop();
  if (milliseconds) {
    await vi.advanceTimersByTimeAsync(milliseconds - 100);
    expect(ended).not.toHaveBeenCalled();
  }
  await vi.advanceTimersByTimeAsync(200);
  expect(ended).toHaveBeenCalledOnce();
  expect(await stopped).toBeInstanceOf(Stopped);
});

test.each([
  ["goes on where they end", true, 0],
  ["is stopped where they do not", false, 1],
])("Python %s after trials are stopped", async (_what, isOver, stops) => {
  const { session } = running({});
  const trials = vi.spyOn(session.trials, "stop").mockReturnValue();
  const stop = vi.spyOn(session, "stop").mockResolvedValue();
  session.stopTrials(() => isOver);
  expect(trials).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(stop).toHaveBeenCalledTimes(stops);
});
