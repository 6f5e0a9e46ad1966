/** Runs programs for the documents of the page, each with a place for its output. */

import { type PythonSession, Stopped } from "../python/client";
import type { OutputChunk, RunError, RunResult, Verdict } from "../python/protocol";
import { duration } from "../views/format";
import type { Activity } from "./activity";

/** Where the output of a program goes, and what the page says of its run. */
export interface OutputSink {
  append(chunks: OutputChunk[]): void;
  note(text: string, kind: "info" | "done" | "warning"): void;
  error(error: RunError): void;
}

export class Runner {
  /** Of the program that runs, or ran last. */
  private sink: OutputSink | null = null;

  constructor(
    private readonly session: PythonSession,
    private readonly activity: Activity,
    private readonly onResult: (result: RunResult) => void,
  ) {
    session.on("output", (chunks) => this.sink?.append(chunks));
    session.on("restarted", (reason) => this.sink?.note(reason, "warning"));
    session.on("state", (state) => {
      if (state === "failed") this.sink?.note(`Python did not load: ${session.failure}`, "warning");
    });
  }

  get busy(): boolean {
    return this.activity.running !== null || this.session.state === "failed";
  }

  /** Where output goes while nothing of a document's own has run yet. */
  listen(sink: OutputSink): void {
    this.sink = sink;
  }

  /**
   * Run a program; null if something else runs, or if it was stopped by ending Python.
   *
   * `filename` is what tracebacks call the program; it can import the `others`.
   */
  async run(
    source: string,
    filename: string,
    sink: OutputSink,
    others: { name: string; text: string }[] = [],
  ): Promise<RunResult | null> {
    return this.perform("Running", sink, async (session) => {
      await session.call("files.place", others);
      return session.call("cell.execute", source, filename);
    });
  }

  /** Run a cell of a lesson, which shares its names with the lesson's other cells; else as `run`. */
  async runCell(
    source: string,
    lesson: string,
    number: number,
    sink: OutputSink,
  ): Promise<RunResult | null> {
    return this.perform(`Running cell ${number}`, sink, (session) =>
      session.call("notebook.execute", source, lesson, number),
    );
  }

  /** Judge an exercise by what the cells of its lesson have defined; null if something else runs. */
  async check(exercise: string, lesson: string, sink: OutputSink): Promise<Verdict | null> {
    const { session, activity } = this;
    if (this.busy) return null;
    this.sink = sink;
    return activity.during(
      "Checking",
      () => void session.stop(),
      async () => {
        const verdict = await session.call("notebook.check", exercise, lesson);
        activity.outcome = { text: verdict.passed ? "Solved" : "Not solved yet", failed: false };
        return verdict;
      },
    );
  }

  private async perform(
    what: string,
    sink: OutputSink,
    work: (session: PythonSession) => Promise<RunResult>,
  ): Promise<RunResult | null> {
    const { session, activity } = this;
    if (this.busy) return null;
    this.sink = sink;
    return activity.during(
      what,
      () => void session.stop(),
      async () => {
        try {
          const result = await work(session);
          this.finish(result, sink);
          return result;
        } catch (error) {
          if (error instanceof Stopped) return null;
          sink.note(error instanceof Error ? error.message : String(error), "warning");
          activity.outcome = { text: "The run failed", failed: true };
          return null;
        }
      },
    );
  }

  private finish(result: RunResult, sink: OutputSink): void {
    const { ok, error, elapsedMs } = result;
    const { activity } = this;
    if (ok) {
      sink.note(`Finished in ${duration(elapsedMs)}`, "done");
      activity.outcome = { text: `Finished in ${duration(elapsedMs)}`, failed: false };
    } else if (error?.kind === "KeyboardInterrupt") {
      sink.note(`Stopped after ${duration(elapsedMs)}`, "warning");
      activity.outcome = { text: "Stopped", failed: false };
    } else if (error) {
      sink.error(error);
      const line = error.diagnostics[0]?.line;
      activity.outcome = {
        text: line ? `${error.kind} in line ${line}` : error.kind,
        failed: true,
      };
    }
    this.onResult(result);
  }
}
