/** The reader comes first: what is asked of one Python, and when its turn is. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PythonSession, Stopped } from "../src/python/client";
import type { Connection, Receiver } from "../src/python/connection";
import { connectTo, host } from "../src/python/hosting";
import type { RuntimeFacts, ToWorker } from "../src/python/messages";
import type { RunResult } from "../src/python/wire";
import { Activity } from "../src/shell/activity";
import { type OutputSink, Runner } from "../src/shell/runner";

type Call = ToWorker & { type: "call" };

/** A Python that takes 10 ms for a call, and 1000 for a look of a view; `log` says what it did. */
class FakePython implements Connection {
  readonly grace = 1000;
  readonly own = true;
  readonly log: string[] = [];
  private current: Call | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly receiver: Receiver,
    readonly interruptible: boolean,
  ) {}

  begin(): void {
    this.receiver.receive({
      type: "ready",
      runtime: { python: "fake" } as unknown as RuntimeFacts,
    });
    this.receiver.receive({ type: "loaded" });
  }

  post(message: ToWorker): void {
    if (message.type !== "call") return;
    if (this.current) throw new Error("Python has a call already");
    this.current = message;
    this.timer = setTimeout(() => this.finish("answer"), message.look ? 1000 : 10);
  }

  seen(): void {}

  allow(): void {}

  interrupt(): boolean {
    if (this.interruptible && this.current) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.finish("refusal"), 1);
    }
    return this.interruptible;
  }

  makeWay = (looking: boolean): boolean => looking && this.interrupt();

  end(): void {
    clearTimeout(this.timer);
  }

  private finish(type: "answer" | "refusal"): void {
    const { id, name, args } = this.current!;
    this.current = null;
    const text = [name, ...args.filter((arg) => typeof arg === "string")].join(" ");
    if (type === "answer") {
      this.log.push(text);
      this.receiver.receive({ type, id, value: name.endsWith(".execute") ? RESULT : VERDICT });
    } else {
      this.log.push(`${text}: interrupted`);
      this.receiver.receive({ type, id, message: "stopped" });
    }
  }
}

const RESULT: RunResult = {
  document: "program",
  ok: true,
  error: null,
  elapsedMs: 1,
  modules: [],
  traces: [],
  programs: [],
  searchFunctions: [],
  searchModules: [],
};
const VERDICT = { passed: true, message: "", excerpt: "" };
const SINK: OutputSink = { append() {}, note() {}, error() {} };

class Page {
  python!: FakePython;
  readonly results: RunResult[] = [];
  readonly session: PythonSession;
  readonly activity: Activity;
  readonly runner: Runner;

  constructor(interruptible = true) {
    this.session = new PythonSession("", (receiver) => {
      this.python = new FakePython(receiver, interruptible);
      return this.python;
    });
    this.session.trials.connect = () => null as unknown as MessagePort;
    this.session.launch();
    this.python.begin();
    this.activity = new Activity(this.session);
    this.runner = new Runner(this.session, this.activity, (result) => this.results.push(result));
  }

  get log(): string[] {
    return this.python.log;
  }
}

/** What each view asks for when it is open: after a result, or when it comes to the front. */
const VIEWS: Record<string, (page: Page) => Promise<unknown>> = {
  tensorir: async () => undefined,
  trace: ({ session }) => session.look(null, "trace_view.derive", "t", {}),
  code: ({ session, activity }) =>
    activity.looking(
      "Compiling",
      () => void session.stop(),
      () => session.look(new AbortController().signal, "code_view.code", "p", null, null),
    ),
  access: ({ session, activity }) =>
    activity.looking(
      "Recording accesses",
      () => void session.stop(),
      () =>
        session.look(null, "access_view.explain", "p", null, null, null, {
          line: 64,
          size: 1024,
          ways: 8,
        }),
    ),
  gpu: ({ session, activity }) =>
    activity.looking(
      "Looking at kernels",
      () => void session.stop(),
      () => session.look(new AbortController().signal, "gpu_view.explain", "p", null, null),
    ),
  search: ({ session }) => session.look(null, "search.details", "s", 0),
};

const cell = (page: Page, number: number) => (job: Parameters<Runner["runCell"]>[0]) =>
  page.runner.runCell(
    job,
    { what: `Running cell ${number}`, source: `cell ${number}`, document: "lesson", number },
    SINK,
  );

/** What is asked in a view: views may look things up between two of its calls. */
const asView =
  (what: string, work: (session: PythonSession) => Promise<unknown>) =>
  ({ session, activity }: Page) =>
    activity.during(
      what,
      () => void session.stop(),
      () => work(session),
      true,
    );

/** What the reader can ask, and what Python is to do for it. */
const ACTIONS: Record<string, [(page: Page) => Promise<unknown>, string[], "shared"?]> = {
  run: [
    ({ runner }) => runner.ask("Running", (job) => runner.run(job, "x = 1", "lesson.py", SINK)),
    ["files.place", "cell.execute x = 1 lesson.py"],
  ],
  "run all": [
    (page) =>
      page.runner.ask("Running all cells", async (job) => {
        await page.runner.restart("lesson");
        for (const number of [1, 2, 3]) await cell(page, number)(job);
      }),
    [
      "notebook.restart lesson",
      ...[1, 2, 3].map((number) => `notebook.execute cell ${number} lesson`),
    ],
  ],
  check: [
    (page) =>
      page.runner.ask("Running cell 4", async (job) => {
        await cell(page, 4)(job);
        const verdict = await page.runner.check(job, "exercise", "lesson", SINK);
        expect(verdict).toEqual(VERDICT);
      }),
    ["notebook.execute cell 4 lesson", "notebook.check exercise lesson"],
  ],
  search: [
    asView("Searching", async (session) => {
      for (let trial = 0; trial < 3; trial += 1) await session.call("search.step", "s");
    }),
    ["search.step s", "search.step s", "search.step s"],
    "shared",
  ],
  "time each step": [
    asView("Timing", async (session) => {
      await session.call("trace_timing.begin", "t", {});
      for (const step of [1, 2]) await session.call("trace_timing.step", "m", "t", {}, step);
      await session.call("trace_timing.finish", "m");
    }),
    [
      "trace_timing.begin t",
      ...["trace_timing.step m t", "trace_timing.step m t"],
      "trace_timing.finish m",
    ],
    "shared",
  ],
  measure: [
    asView("Measuring", (session) => session.call("code_measure.measure", "p", "main", null)),
    ["code_measure.measure p main"],
    "shared",
  ],
  "time the model": [
    asView("Timing the model", (session) => session.call("search.compare", "s", 0)),
    ["search.compare s"],
    "shared",
  ],
};

const PAIRS = Object.keys(VIEWS).flatMap((view) =>
  Object.keys(ACTIONS).map((action) => [view, action] as const),
);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a view at work and an action of the reader", () => {
  test.each(PAIRS)(
    "%s, %s: the action interrupts, and the view has its turn after it",
    async (view, action) => {
      const page = new Page();
      const [ask, expected, shared] = ACTIONS[action]!;
      const looked = VIEWS[view]!(page);
      await vi.advanceTimersByTimeAsync(500);
      const asked = ask(page);
      await vi.advanceTimersByTimeAsync(1 + 10 * expected.length);
      const own = page.log.filter((line) => !line.endsWith(": interrupted"));
      // A search lets the look in between two trials, and so does what views ask; all else is done.
      if (shared && view !== "tensorir") expect(own).toEqual(expected.slice(0, 1));
      else expect(own).toEqual(expected);
      await vi.advanceTimersByTimeAsync(2000);
      await asked;
      await looked;
      expect(page.activity.running).toBeNull();
      expect(page.log.filter((line) => line.endsWith(": interrupted"))).toHaveLength(
        view === "tensorir" ? 0 : 1,
      );
    },
  );

  test.each(PAIRS)(
    "%s, %s: where nothing can be interrupted, the action waits",
    async (view, action) => {
      const page = new Page(false);
      const [ask, expected] = ACTIONS[action]!;
      const looked = VIEWS[view]!(page);
      await vi.advanceTimersByTimeAsync(500);
      const asked = ask(page);
      await vi.advanceTimersByTimeAsync(500 + 10 * expected.length);
      expect(page.log.slice(-expected.length)).toEqual(expected);
      await Promise.all([asked, looked]);
    },
  );

  test.each(PAIRS)(
    "%s, %s: a view that is opened meanwhile waits, for a search only until its next trial",
    async (view, action) => {
      const page = new Page();
      const [ask, expected, shared] = ACTIONS[action]!;
      const asked = ask(page);
      await vi.advanceTimersByTimeAsync(5);
      const looked = VIEWS[view]!(page);
      await vi.advanceTimersByTimeAsync(3000);
      await Promise.all([asked, looked]);
      const looks = page.log.filter((line) => !expected.includes(line));
      const at = shared ? 1 : expected.length;
      expect(page.log.slice(0, at)).toEqual(expected.slice(0, at));
      expect(page.log).toEqual([...expected.slice(0, at), ...looks, ...expected.slice(at)]);
      expect(page.log.some((line) => line.endsWith("interrupted"))).toBe(false);
    },
  );
});

test.each(
  Object.keys(ACTIONS).flatMap((first) => Object.keys(ACTIONS).map((second) => [first, second])),
)("%s, then %s: both are done, one after the other", async (first, second) => {
  const page = new Page();
  const [askFirst, ofFirst] = ACTIONS[first!]!;
  const [askSecond, ofSecond] = ACTIONS[second!]!;
  const all = Promise.all([askFirst(page), askSecond(page)]);
  expect(page.activity.waiting).toBe(1);
  await vi.advanceTimersByTimeAsync(1000);
  await all;
  expect(page.log).toEqual([...ofFirst, ...ofSecond]);
});

test("views see the last result of what was asked, once nothing runs", async () => {
  const page = new Page();
  const [runAll] = ACTIONS["run all"]!;
  const [run] = ACTIONS.run!;
  const all = Promise.all([runAll(page), run(page)]);
  await vi.advanceTimersByTimeAsync(45);
  expect(page.results).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(100);
  await all;
  expect(page.results).toHaveLength(1);
});

test("a document that is left is closed once, after what it runs, and shows no result", async () => {
  const page = new Page();
  const left: string[] = [];
  page.runner.onClose = (document) => left.push(document);
  expect(page.runner.close("lesson")).toBe(false);
  const running = page.runner.ask("Running", cell(page, 1));
  await vi.advanceTimersByTimeAsync(5);
  expect([page.runner.close("lesson"), page.runner.close("lesson")]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(50);
  await running;
  expect(page.log).toEqual(["notebook.execute cell 1 lesson", "notebook.close lesson"]);
  expect(left).toEqual(["lesson"]);
  expect(page.results).toHaveLength(0);
  const [runAll] = ACTIONS["run all"]!;
  const again = runAll(page);
  await vi.advanceTimersByTimeAsync(200);
  await again;
  expect(page.results).toHaveLength(1);
});

test("Stop ends what runs, and what waits has its turn", async () => {
  const page = new Page();
  const first = page.runner.ask("first", (job) => page.runner.run(job, "first", "lesson.py", SINK));
  const second = page.runner.ask("second", (job) =>
    page.runner.run(job, "second", "lesson.py", SINK),
  );
  const looked = page.session.look(null, "completion.live", "program");
  await vi.advanceTimersByTimeAsync(15);
  page.activity.stop();
  await vi.advanceTimersByTimeAsync(2000);
  await Promise.all([first, second, looked]);
  expect(page.log).toContain("cell.execute second lesson.py");
  expect(page.log).not.toContain("cell.execute first lesson.py");
});

test("Stop ends a program whose files were placed before Python heard of it", async () => {
  const page = new Page();
  page.python.interrupt = () => true;
  const [run] = ACTIONS.run!;
  const ran = run(page);
  await vi.advanceTimersByTimeAsync(5);
  page.activity.stop();
  await vi.advanceTimersByTimeAsync(100);
  expect(await ran).toBeNull();
  expect(page.log).toEqual(["files.place"]);
  expect(page.activity.running).toBeNull();
});

test("an error that Stop has become in the program is not told as one of the program", async () => {
  const page = new Page();
  // The interrupt came while a library in C looked at an argument.
  const error = { kind: "TypeError", message: "no such arguments", text: "", diagnostics: [] };
  vi.spyOn(page.session, "call").mockImplementation(async (...[name]) => {
    if (name !== "cell.execute") return undefined as never;
    page.activity.stop();
    return { ...RESULT, ok: false, error } as never;
  });
  const told: string[] = [];
  const sink = {
    append() {},
    note: (text: string) => told.push(text),
    error: () => told.push("an error"),
  };
  await page.runner.ask("run", (job) => page.runner.run(job, "x", "lesson.py", sink));
  expect(told).toEqual([expect.stringMatching(/^Stopped after /)]);
  expect(page.activity.outcome.value).toEqual({ text: "Stopped", failed: false });
});

test("Stop ends all cells of a Run all", async () => {
  const page = new Page();
  const done = page.runner.ask("all", async (job) => {
    const results = [];
    for (const number of [1, 2, 3]) results.push(await cell(page, number)(job));
    return results;
  });
  await vi.advanceTimersByTimeAsync(15);
  page.activity.stop();
  await vi.advanceTimersByTimeAsync(2000);
  expect((await done).map((result) => result?.ok ?? null)).toEqual([true, null, null]);
});

test("a look that nobody waits for any more is taken back", async () => {
  const page = new Page();
  const asking = new AbortController();
  const old = page.session.look(asking.signal, "code_view.code", "old", null, null);
  const next = page.session.look(null, "code_view.code", "new", null, null);
  const failed = expect(old).rejects.toThrow(Stopped);
  await vi.advanceTimersByTimeAsync(100);
  asking.abort();
  await vi.advanceTimersByTimeAsync(1100);
  await failed;
  await next;
  expect(page.log).toEqual(["code_view.code old: interrupted", "code_view.code new"]);
});

test("nothing is interrupted before all of Python is there", async () => {
  const page = new Page();
  page.session.restart("");
  const receiver = page.python as unknown as { receiver: Receiver };
  receiver.receiver.receive({ type: "ready", runtime: {} as RuntimeFacts });
  const looked = page.session.look(null, "checking.check", "program", "x");
  await vi.advanceTimersByTimeAsync(1);
  page.session.makeWay();
  await vi.advanceTimersByTimeAsync(1000);
  await looked;
  expect(page.log).toEqual(["checking.check program x"]);
});

test("another frame's action interrupts a view of this page, and the other way round", async () => {
  vi.useRealTimers();
  const page = new Page();
  const { port1, port2 } = new MessageChannel();
  host(page.session, port1);
  const guest = new PythonSession("", connectTo(port2));
  guest.trials.connect = () => ({ close() {} }) as unknown as MessagePort;
  guest.launch();
  const activity = new Activity(guest);
  const runner = new Runner(guest, activity, () => undefined);
  const run = (source: string) =>
    runner.ask("Running", (job) => runner.run(job, source, "lesson.py", SINK));

  const looked = page.session.look(null, "trace_view.derive", "of the page", {});
  await run("1");
  await looked;
  const guestLooked = guest.look(null, "trace_view.derive", "of the guest", {});
  await new Promise((resolve) => setTimeout(resolve, 50));
  await run("2");
  await guestLooked;
  port1.close();
  expect(page.log).toEqual([
    "trace_view.derive of the page: interrupted",
    "files.place",
    // Between two calls of another frame; the second interrupts it again.
    "trace_view.derive of the page: interrupted",
    "cell.execute 1 lesson.py",
    "trace_view.derive of the page",
    "trace_view.derive of the guest: interrupted",
    "files.place",
    "cell.execute 2 lesson.py",
    "trace_view.derive of the guest",
  ]);
});
