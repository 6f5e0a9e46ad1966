import { expect, test } from "vitest";
import type { DerivedTrace, Titled } from "../src/python/wire";
import { Activity } from "../src/shell/activity";
import { TraceModel } from "../src/views/trace/model";
import type { ViewContext } from "../src/views/view";

const python = { makeWay: () => undefined, hold: () => undefined, release: () => undefined };
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** The model of a view whose Python answers at once, and the steps that were timed in it. */
function setUp(): { model: TraceModel; activity: Activity; timed: unknown[] } {
  const activity = new Activity(python);
  const timed: unknown[] = [];
  const answers: Record<string, (...args: unknown[]) => unknown> = {
    "trace_view.derive": (_, changes) =>
      ({
        steps: [{ index: 0 }, { index: 1 }],
        controls: [{ changed: Object.keys(changes as object).length > 0 }],
        failure: null,
      }) as unknown as DerivedTrace,
    "trace_timing.begin": (_, changes) => {
      timed.push(changes);
      return { id: "t", outcome: { state: "timed", seconds: 2e-3, reason: null } };
    },
    "trace_timing.step": () => ({ state: "timed", seconds: 1e-3, reason: null }),
    "trace_timing.finish": () => null,
  };
  const context = {
    session: {
      state: "ready",
      look: async (_: null, name: string, ...args: unknown[]) => answers[name]!(...args),
      call: async (name: string, ...args: unknown[]) => answers[name]!(...args),
    },
    during: (what: string, stop: () => void, work: () => Promise<void>) =>
      activity.during(what, stop, work, true),
    busy: activity.busy,
  } as unknown as ViewContext;
  return { model: new TraceModel(context), activity, timed };
}

test("a changed decision is timed when what the reader runs is done", async () => {
  const { model, activity, timed } = setUp();
  await model.show({ id: "a", title: "a" } as Titled);
  let end = (): void => undefined;
  const running = activity.during(
    "Running",
    () => undefined,
    () => new Promise<void>((done) => (end = done)),
  );
  const changed = model.change({ 1: [4, 4] }, 1);
  await settled();
  expect(timed).toEqual([]);
  expect(model.outcome.value).toEqual({
    text: "Program updated; it is checked and timed when what runs is done",
    state: "busy",
  });
  end();
  await Promise.all([running, changed]);
  expect(timed).toEqual([{ 1: [4, 4] }]);
  expect(model.outcome.value.text).toContain("Same result as the unscheduled program");
  expect(model.times.value.get(1)?.seconds).toBe(1e-3);
});

test("of decisions changed while it waits the last ones are timed", async () => {
  const { model, activity, timed } = setUp();
  await model.show({ id: "a", title: "a" } as Titled);
  let end = (): void => undefined;
  const running = activity.during(
    "Running",
    () => undefined,
    () => new Promise<void>((done) => (end = done)),
  );
  const first = model.change({ 1: [4, 4] }, 1);
  await settled();
  const second = model.change({ 1: [8, 2] }, 1);
  await settled();
  end();
  await Promise.all([running, first, second]);
  expect(timed).toEqual([{ 1: [8, 2] }]);
  expect(model.outcome.value.state).toBe("good");
});
