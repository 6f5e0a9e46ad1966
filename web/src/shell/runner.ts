/** Runs programs for the documents of the page, each with a place for its output. */

import { message } from "../errors";
import { type PythonSession, Stopped } from "../python/client";
import { isRunResult } from "../python/incoming";
import type { OutputChunk } from "../python/messages";
import type { RunError, RunResult, Verdict } from "../python/wire";
import { duration } from "../views/format";
import type { Activity, Job } from "./activity";

/** Where the output of a program goes, and what the page says of its run. */
export interface OutputSink {
  append(chunks: OutputChunk[]): void;
  note(text: string, kind: "info" | "done" | "warning"): void;
  error(error: RunError): void;
}

/** A cell that runs; `number` is part of what tracebacks call it. */
export interface CellRun {
  what: string;
  source: string;
  document: string;
  number: number;
}

export class Runner {
  /** Called with a document that is left for good. */
  onClose?: (document: string) => void;
  /** Documents that this Python knows. */
  private readonly documents = new Set<string>();
  /** Of the program that runs, or ran last. */
  private sink: OutputSink | null = null;
  /** What views have not seen yet. */
  private result: { result: RunResult; owner: string } | null = null;

  /** `onResult` hears of the latest result once nothing runs any more that the reader has asked, and
   * which document it is of. */
  constructor(
    private readonly session: PythonSession,
    private readonly activity: Activity,
    onResult: (result: RunResult, owner: string) => void,
  ) {
    session.on("output", (chunks) => this.sink?.append(chunks));
    session.on("ignored", () =>
      this.sink?.note(
        "A program sent the page what is no message of ours; it was ignored.",
        "warning",
      ),
    );
    session.on("restarted", (reason) => {
      this.documents.clear();
      this.sink?.note(reason, "warning");
    });
    session.on("state", (state) => {
      if (state === "failed") this.sink?.note(`Python did not load: ${session.failure}`, "warning");
    });
    activity.onRest = () => {
      const latest = this.result;
      this.result = null;
      if (latest) onResult(latest.result, latest.owner);
    };
  }

  /** Where output goes while nothing of a document's own has run yet. */
  listen(sink: OutputSink): void {
    this.sink = sink;
  }

  /** Do something that takes several calls, when all that was asked before is done. */
  ask<T>(what: string, work: (job: Job) => Promise<T>): Promise<T> {
    return this.activity.during(what, () => void this.session.stop(), work);
  }

  /**
   * Run a program; null if it was stopped by ending Python.
   *
   * `filename` is what tracebacks call the program; it can import the `others`.
   */
  async run(
    job: Job,
    source: string,
    filename: string,
    sink: OutputSink,
    others: { name: string; text: string }[] = [],
  ): Promise<RunResult | null> {
    return this.perform(job, "program", sink, async () => {
      await this.session.call("files.place", others);
      // It may have been done before it heard of Stop.
      if (job.stopped) throw new Stopped("Stopped before it began.");
      return this.session.call("cell.execute", source, filename);
    });
  }

  /** Run a cell of a document, which shares its names with the document's other cells; else as `run`. */
  async runCell(
    job: Job,
    { what, source, document, number }: CellRun,
    sink: OutputSink,
  ): Promise<RunResult | null> {
    job.what.value = what;
    return this.perform(job, document, sink, () =>
      this.session.call("notebook.execute", source, document, number),
    );
  }

  /** Forget what the cells of a lesson have defined. */
  async restart(lesson: string): Promise<void> {
    await this.session.call("notebook.restart", lesson);
  }

  /** Judge an exercise by what the cells of its lesson have defined; null if it was stopped. */
  async check(
    job: Job,
    exercise: string,
    lesson: string,
    sink: OutputSink,
  ): Promise<Verdict | null> {
    if (job.stopped) return null;
    this.sink = sink;
    job.what.value = "Checking";
    try {
      const verdict = await this.session.call("notebook.check", exercise, lesson);
      this.activity.outcome.value = {
        text: verdict.passed ? "Solved" : "Not solved yet",
        failed: false,
      };
      return verdict;
    } catch (error) {
      if (error instanceof Stopped) return null;
      throw error;
    }
  }

  /**
   * Let go of a document for good: of what it has defined, and of what views show of it. Whether
   * there was something.
   */
  close(document: string): boolean {
    if (!this.documents.delete(document)) return false;
    void this.session.call("notebook.close", document).catch(() => undefined);
    this.onClose?.(document);
    return true;
  }

  private async perform(
    job: Job,
    owner: string,
    sink: OutputSink,
    work: () => Promise<RunResult>,
  ): Promise<RunResult | null> {
    if (job.stopped) return null;
    this.sink = sink;
    this.documents.add(owner);
    try {
      const answer: unknown = await work();
      if (!isRunResult(answer)) {
        this.session.restart("Python failed and was restarted: its answer is no result of a run");
        return null;
      }
      const result = job.stopped ? stopped(answer) : answer;
      this.finish(result, sink);
      // It may have been left while it ran.
      if (this.documents.has(owner)) this.result = { result, owner };
      return result;
    } catch (error) {
      if (error instanceof Stopped) return null;
      sink.note(message(error), "warning");
      this.activity.outcome.value = { text: "The run failed", failed: true };
      return null;
    }
  }

  private finish(result: RunResult, sink: OutputSink): void {
    const { ok, error, elapsedMs } = result;
    const { activity } = this;
    if (ok) {
      sink.note(`Finished in ${duration(elapsedMs)}`, "done");
      activity.outcome.value = { text: `Finished in ${duration(elapsedMs)}`, failed: false };
    } else if (error?.kind === "KeyboardInterrupt") {
      sink.note(`Stopped after ${duration(elapsedMs)}`, "warning");
      activity.outcome.value = { text: "Stopped", failed: false };
    } else if (error) {
      sink.error(error);
      const line = error.diagnostics[0]?.line;
      activity.outcome.value = {
        text: line ? `${error.kind} in line ${line}` : error.kind,
        failed: true,
      };
    }
  }
}

/** A result after Stop: libraries in C make other errors of the interrupt that reaches them. */
function stopped(result: RunResult): RunResult {
  if (!result.error) return result;
  return { ...result, error: { ...result.error, kind: "KeyboardInterrupt" } };
}
