/** What the page and its Python worker say to each other. All of it is plain, cloneable data. */

import type { LiveNames } from "../program/help/table";

import type { AccessReport, AccessResult } from "../views/access/report";
import type {
  EarlierRecords,
  ModelTimes,
  ReadRecords,
  SearchModule,
  SearchSettings,
  SearchStart,
  ToldTrial,
  TrialDetails,
} from "./search_protocol";

export type Stream = "stdout" | "stderr";

/** Output that was left out, because there was too much of it. */
export interface Dropped {
  lines: number;
  characters: number;
}

export interface OutputChunk {
  stream: Stream;
  text: string;
  /** What was left out before it. */
  dropped?: Dropped;
  /** In the place of a text. */
  picture?: Picture;
}

/** A picture that a program shows, such as a figure; its size in the page's pixels. */
export interface Picture {
  /** A `data:` URL. */
  url: string;
  width: number;
  height: number;
  description: string;
}

export type ToWorker =
  | {
      type: "start";
      base: string;
      interrupt: Uint8Array | null;
      /** Of the `Backlog`. */
      backlog: SharedArrayBuffer | null;
      trials: MessagePort;
    }
  | { type: "call"; id: number; name: CallName; args: unknown[] }
  /** Where Python is another frame's: join in, output was seen, stop what this frame runs there, end Python. */
  | { type: "join" }
  | { type: "seen"; size: number }
  | { type: "stop" }
  | { type: "end" };

export type FromWorker =
  | { type: "progress"; stage: string; fraction: number }
  | { type: "ready"; runtime: RuntimeFacts }
  /** What came behind, or what a program imports, is there, too. */
  | { type: "loaded" }
  | { type: "kept"; done: boolean }
  | { type: "failed"; message: string }
  /** Where Python is another frame's: it was ended there. */
  | { type: "restarted"; reason: string }
  | { type: "output"; chunks: OutputChunk[]; size: number }
  | { type: "event"; name: string; data: unknown }
  | { type: "answer"; id: number; value: unknown }
  | { type: "refusal"; id: number; message: string; stopped?: boolean };

export interface RuntimeFacts {
  pyodide: string;
  python: string;
  mlcweb: string;
  isolated: boolean;
  /** Whether Python's memory was restored from an earlier visit. */
  restored: boolean;
  /** Milliseconds from the worker's start to ready. */
  milliseconds: number;
}

/** Functions of `mlcweb.playground` that the page may call, by module and name. */
export interface Calls {
  "cell.execute": (source: string, filename: string) => RunResult;
  "notebook.execute": (source: string, lesson: string, number: number) => RunResult;
  "notebook.restart": (lesson: string) => null;
  "notebook.check": (exercise: string, lesson: string) => Verdict;
  "checking.check": (source: string) => Diagnostic[];
  "completion.live": () => LiveNames;
  "files.place": (files: { name: string; text: string }[]) => null;
  "trace_view.trace_steps": (traceId: string) => TraceStep[];
  "trace_view.derive": (traceId: string, changes: Changes) => DerivedTrace;
  "trace_view.refusal": (
    traceId: string,
    changes: Changes,
    step: number,
    decision: unknown,
  ) => string | null;
  "trace_timing.begin": (traceId: string, changes: Changes) => { id: string; outcome: StepOutcome };
  "trace_timing.step": (
    timingId: string,
    traceId: string,
    changes: Changes,
    step: number,
  ) => StepOutcome;
  "trace_timing.finish": (timingId: string) => null;
  "trace_compare.compare": (
    first: string,
    ofFirst: Changes,
    second: string,
    ofSecond: Changes,
  ) => TraceComparison;
  "trace_export.python": (traceId: string, changes: Changes) => string;
  "trace_export.record": (traceId: string, changes: Changes, runSecs: number[] | null) => unknown;
  "trace_export.steps_json": (traceId: string, changes: Changes) => unknown[];
  "trace_export.load": (title: string, steps: unknown[]) => ShownTrace;
  "access_view.explain": (
    programId: string,
    functionName: string | null,
    /** Empty for the program that the schedule started from. */
    otherId: string | null,
    size: number | null,
    line: number,
    cacheBytes: number,
    ways: number,
  ) => AccessReport;
  "access_view.simulate": (
    programId: string,
    functionName: string,
    otherId: string | null,
    size: number,
    line: number,
    cacheBytes: number,
    ways: number,
  ) => AccessResult;
  "code_view.code": (
    programId: string,
    functionName: string | null,
    fused: boolean | null,
  ) => MachineCode;
  "code_view.after_pass": (
    programId: string,
    functionName: string,
    index: number,
  ) => { lines: PassLine[] };
  "code_measure.measure": (
    programId: string,
    functionName: string,
    fused: boolean | null,
  ) => CodeMeasurement;
  "search.workload": (
    moduleName: string,
    functionName: string | null,
  ) => { key: string; line: string };
  "search.begin": (settings: SearchSettings, earlier: EarlierRecords | null) => SearchStart;
  "search.step": (searchId: string) => ToldTrial | null;
  "search.details": (searchId: string, index: number) => TrialDetails;
  "search.compare": (searchId: string, index: number) => ModelTimes;
  "search.read_files": (files: Record<string, string>) => ReadRecords;
  "search.forget": (searchId: string) => null;
  "search.finish": (searchId: string) => null;
}

export type CallName = keyof Calls;

/** Whether an exercise is solved, and what to tell its reader. */
export interface Verdict {
  passed: boolean;
  message: string;
}

/** A range of the program's text. Lines count from 1, columns from 0, ends are exclusive. */
export interface Diagnostic {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
  message: string;
  severity: "error" | "warning";
  /** An edit that would mend it: `text` in the place of a range. */
  fix?: {
    title: string;
    text: string;
    line: number;
    column: number;
    endLine: number;
    endColumn: number;
  };
}

export interface RunError {
  /** The exception's class name. */
  kind: string;
  message: string;
  /** The traceback, with the user's frames only. */
  text: string;
  diagnostics: Diagnostic[];
}

export interface ShownModule {
  id: string;
  title: string;
  source: string;
}

export interface Instruction {
  index: number;
  /** The instruction as Python source, with its decision. */
  text: string;
  name: string;
  /** What a sampling instruction decided, as Python source. */
  decision: string | null;
  isSampling: boolean;
}

export interface ShownTrace {
  id: string;
  title: string;
  steps: Instruction[];
}

export interface RunResult {
  ok: boolean;
  error: RunError | null;
  elapsedMs: number;
  modules: ShownModule[];
  traces: ShownTrace[];
  /** Programs whose machine code can be looked at, the latest last. */
  programs: { id: string; title: string }[];
  searchFunctions: { name: string; line: number }[];
  searchModules: SearchModule[];
}

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

/** Decisions in place of a trace's own, by step. */
export type Changes = Record<string, unknown>;

/**
 * What step `index` of a trace did; step 0 is the program before any. Where the step leaves the
 * program as it was, `module`, `diff`, `nest` and `gone` are null.
 */
export interface TraceStep {
  index: number;
  /** A sentence without its subject: "splits j (128) into …". */
  words: string;
  changed: boolean;
  module: string | null;
  /** The lines of the program, with "-", "+" or a blank in front. */
  diff: string | null;
  nest: NestEntry[] | null;
  /** Loops and blocks that the step did away with. */
  gone: string[] | null;
}

/** A part of a loop nest; `change` is what the step did to it. */
export type NestEntry =
  | { kind: "function"; name: string; body: NestEntry[] }
  | { kind: "statement"; text: string; body: NestEntry[] }
  | NestLoop
  | NestBlock;

export interface NestLoop {
  kind: "loop";
  name: string;
  extent: string;
  how: "serial" | "parallel" | "vectorized" | "unrolled" | "thread";
  /** The thread axis that it is bound to. */
  thread: string | null;
  notes: string[];
  /** Where it came from: "outer part of j, 16 of 128". */
  origin: string;
  /** Numbers of the loops that it goes back to. */
  colours: number[];
  change: string | null;
  body: NestEntry[];
}

export interface NestBlock {
  kind: "block";
  name: string;
  iterators: { name: string; type: string; value: string }[];
  where: string | null;
  reads: NestRegion[];
  writes: NestRegion[];
  init: string | null;
  statement: string | null;
  buffers: string[];
  notes: string[];
  change: string | null;
  body: NestEntry[];
}

export interface NestRegion {
  text: string;
  buffer: string;
  scope: string;
  elements: number | null;
}

/** A trace with some decisions replaced, as far as its steps can be done. */
export interface DerivedTrace {
  instructions: Instruction[];
  steps: TraceStep[];
  controls: TraceControl[];
  failure: { step: number; message: string } | null;
}

/** A decision of a trace, and what it could be instead. */
export interface TraceControl {
  step: number;
  kind: "tile" | "choice" | "location" | "factors";
  label: string;
  decision: unknown;
  recorded: unknown;
  changed: boolean;
  parts: { name: string; value: string; options: TraceOption[] }[];
}

export interface TraceOption {
  text: string;
  /** The whole decision that it would make. */
  decision: unknown;
  /** Why it cannot be chosen. */
  reason: string | null;
}

/** How long the program after a step takes, or why that is not known. */
export interface StepOutcome {
  state: "measured" | "failed" | "stopped";
  seconds: number | null;
  repeats: number[];
  reason: string | null;
}

/** Two traces: pairs of steps, and how the programs differ in the end. */
export interface TraceComparison {
  rows: [number | null, number | null][];
  /** Rows whose steps are the same but for what they decide. */
  decided: number[];
  equal: boolean;
  diff: string;
}

/** Text whose lines know which lines, counted from 1, of an earlier text they were made from. */
export interface TracedText {
  lines: string[];
  origins: number[][];
}

/** What a function becomes. Where there is no machine code, `error` says why. */
export interface MachineCode {
  functions: string[];
  function: string;
  /** `standsFor`: the lines whose code is meant by each line. */
  tensorir: { lines: string[]; standsFor: number[][] };
  passes: { name: string; changed: boolean }[] | null;
  /** The loops; they come from lines of `tensorir`. */
  lowered: TracedText | null;
  /** The instructions; they come from lines of `lowered`. */
  wat: TracedText | null;
  size: CodeSize | null;
  /** Fused multiply-adds: whether there are any, may be used, and how many instructions are some. */
  fused: { available: boolean; on: boolean; used: number };
  error: { message: string; line: number | null } | null;
  notes: string[];
}

export interface CodeSize {
  /** Of the module. */
  bytes: number;
  /** Of the function, and how many of them are vector instructions. */
  instructions: number;
  simd: number;
  /** The innermost loop that most instructions run in; `line` is one of the loops' text. */
  loop: { name: string; line: number | null; instructions: number; simd: number } | null;
}

export interface PassLine extends DiffLine {
  origins: number[];
}

export interface CodeMeasurement {
  /** The median of `repeats`, in seconds a call. */
  seconds: number;
  repeats: number[];
  operations: number;
  /** Of all arguments, each once. */
  bytes: number;
  /** Operations a second. */
  rate: number;
  fused: boolean;
  peak: MachinePeak;
  /** Seconds. */
  clockStep: number;
  isolated: boolean | null;
}

/** What one thread of this tab reaches: operations a second, bytes a second. */
export interface MachinePeak {
  dtype: string;
  flops: number;
  fusedFlops: number | null;
  memoryBandwidth: number;
  cacheBandwidth: number;
}
