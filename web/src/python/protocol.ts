/** What the page and its Python worker say to each other. All of it is plain, cloneable data. */

export type Stream = "stdout" | "stderr";

/** A piece of output. `dropped` lines before it were left out, because there were too many. */
export interface OutputChunk {
  stream: Stream;
  text: string;
  dropped: number;
}

export type ToWorker =
  | { type: "start"; base: string; interrupt: Uint8Array | null; trials: MessagePort }
  | { type: "call"; id: number; name: CallName; args: unknown[] };

export type FromWorker =
  | { type: "progress"; stage: string; fraction: number }
  | { type: "ready"; runtime: RuntimeFacts }
  | { type: "kept"; done: boolean }
  | { type: "failed"; message: string }
  | { type: "output"; chunks: OutputChunk[] }
  | { type: "answer"; id: number; value: unknown }
  | { type: "refusal"; id: number; message: string };

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
  "files.place": (files: { name: string; text: string }[]) => null;
  "trace_view.trace_steps": (traceId: string) => TraceStep[];
  "code_view.code": (programId: string, functionName: string | null, fused: boolean | null) => MachineCode;
  "code_view.after_pass": (programId: string, functionName: string, index: number) => { lines: PassLine[] };
  "code_measure.measure": (programId: string, functionName: string, fused: boolean | null) => CodeMeasurement;
  "search.begin": (
    functionName: string,
    moduleName: string,
    seed: number,
    trials: number,
    workers: number,
  ) => SearchStart;
  "search.step": (searchId: string) => Trial | null;
  "search.details": (searchId: string, index: number) => TrialDetails;
  "search.finish": (searchId: string) => null;
}

export type CallName = keyof Calls;

/** A range of the program's text. Lines count from 1, columns from 0, ends are exclusive. */
export interface Diagnostic {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
  message: string;
  severity: "error" | "warning";
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
  searchModules: { name: string }[];
}

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

/** The module after instruction `index` of a trace; index 0 is the module before any. */
export interface TraceStep {
  index: number;
  diff: DiffLine[];
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

export interface SearchStart {
  id: string;
  /** Time of the program as it stands, unscheduled. */
  baselineSeconds: number;
  /** How many trials are measured at one time. */
  workers: number;
}

export interface Trial {
  index: number;
  seed: number;
  state: "measured" | "repeated" | "failed";
  /** The median of `repeats`. */
  seconds: number | null;
  /** Seconds per call of each batch. */
  repeats: number[];
  /** Why a failed trial failed. */
  reason: string | null;
  /** The earlier trial with the same program, whose time a repeated trial takes over. */
  sameAs: number | null;
  /** Measured once more at the end, with nothing beside it. */
  confirmed: boolean;
  decisions: string[];
}

export interface TrialDetails {
  trace: ShownTrace | null;
  source: string | null;
  /** Python that builds this trial's schedule again. */
  code: string | null;
}
