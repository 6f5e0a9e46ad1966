/** What a run left behind: enough to show it again, and to compare it with another. */

import { BoundedOutput } from "../python/bounded";
import type { OutputChunk } from "../python/messages";
import type { RunError, RunResult, ShownModule } from "../python/wire";
import type { OutputSink } from "../shell/runner";

/** Characters kept of the output of one run at least. */
const KEPT = 30_000;
/** Characters of a picture's data from which on it is not kept. */
const MAX_PICTURE = 400_000;

export interface RunRecord {
  /** Names the cell in its document; a program is one cell for each of its files. */
  cell: string;
  source: string;
  /** How many cells of its notebook had run when it did, with it. */
  count?: number;
  ok: boolean;
  elapsedMs: number;
  /** Milliseconds since 1970. */
  at: number;
  output: OutputChunk[];
  /** The outputs as the notebook's file has them that brought them along, where `output` has less. */
  file?: object[];
  notes: { text: string; kind: "info" | "warning" }[];
  error: RunError | null;
  modules: ShownModule[];
}

/** Hands output on, and keeps it. */
export class Recorder implements OutputSink {
  readonly notes: RunRecord["notes"] = [];
  private readonly pieces = new BoundedOutput(KEPT);

  constructor(private readonly to: OutputSink) {}

  get output(): OutputChunk[] {
    return this.pieces.chunks;
  }

  append(chunks: OutputChunk[]): void {
    for (const chunk of chunks)
      if ((chunk.picture?.url.length ?? 0) <= MAX_PICTURE) this.pieces.add(chunk);
    this.to.append(chunks);
  }

  note(text: string, kind: "info" | "done" | "warning"): void {
    if (kind !== "done") this.notes.push({ text, kind });
    this.to.note(text, kind);
  }

  error(error: RunError): void {
    this.to.error(error);
  }
}

/** Whether this is a run: the browser's database may hold one of another version, or a damaged one. */
export function isRun(stored: unknown): stored is RunRecord {
  const run = stored as Partial<RunRecord> | null;
  return (
    typeof run?.cell === "string" &&
    typeof run.source === "string" &&
    typeof run.at === "number" &&
    [run.output, run.notes, run.modules].every(Array.isArray)
  );
}

/** What a run of a cell came to. */
export function recordOf(
  cell: string,
  source: string,
  { ok, error, elapsedMs, modules }: RunResult,
  { output, notes }: Recorder,
): RunRecord {
  return { cell, source, ok, error, elapsedMs, modules, output, notes, at: Date.now() };
}

/** Show again what a run printed, and how it ended. */
export function replay({ output, notes, error }: RunRecord, sink: OutputSink): void {
  sink.append(output.map((chunk) => ({ ...chunk })));
  for (const { text, kind } of notes) sink.note(text, kind);
  if (error && error.kind !== "KeyboardInterrupt") sink.error(error);
}

/** Characters that a record takes in the browser's database, about. */
export function sizeOf({ source, output, file, error, modules }: RunRecord): number {
  const pieces = output.reduce(
    (sum, { text, picture, html }) => sum + (picture?.url ?? html ?? text).length,
    0,
  );
  const texts = modules.reduce((sum, module) => sum + module.source.length, 0);
  const kept = file ? JSON.stringify(file).length : 0;
  return source.length + pieces + kept + texts + (error?.text.length ?? 0);
}

/** "at 14:05", or the day before it where that is another. */
export function moment(at: number, now = Date.now()): string {
  const [then, today] = [new Date(at), new Date(now)];
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === today.toDateString()) return `at ${time}`;
  return `on ${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} at ${time}`;
}
