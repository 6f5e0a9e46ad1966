/** What the page and its Python worker say to each other. All of it is plain, cloneable data. */

export type Stream = "stdout" | "stderr";

/** A piece of output. `dropped` lines before it were left out, because there were too many. */
export interface OutputChunk {
  stream: Stream;
  text: string;
  dropped: number;
}

export type ToWorker =
  | { type: "start"; base: string; interrupt: Uint8Array | null }
  | { type: "call"; id: number; name: CallName; args: unknown[] };

export type FromWorker =
  | { type: "progress"; stage: string; fraction: number }
  | { type: "ready"; runtime: RuntimeFacts }
  | { type: "failed"; message: string }
  | { type: "output"; chunks: OutputChunk[] }
  | { type: "answer"; id: number; value: unknown }
  | { type: "refusal"; id: number; message: string };

export interface RuntimeFacts {
  pyodide: string;
  python: string;
  mlcweb: string;
  isolated: boolean;
  /** Milliseconds from the worker's start to ready. */
  milliseconds: number;
}

/** Functions of `mlcweb.playground` that the page may call, by module and name. */
export interface Calls {
  "cell.execute": (source: string, filename: string) => RunResult;
  "trace_view.trace_steps": (traceId: string) => TraceStep[];
  "search.begin": (functionName: string, moduleName: string, seed: number) => SearchStart;
  "search.step": (searchId: string) => Trial;
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

export interface SearchStart {
  id: string;
  /** Time of the program as it stands, unscheduled. */
  baselineSeconds: number;
}

export interface Trial {
  index: number;
  seed: number;
  state: "measured" | "repeated" | "failed";
  seconds: number | null;
  /** Why a failed trial failed. */
  reason: string | null;
  /** The earlier trial with the same program, whose time a repeated trial takes over. */
  sameAs: number | null;
  decisions: string[];
}

export interface TrialDetails {
  trace: ShownTrace | null;
  source: string | null;
  /** Python that builds this trial's schedule again. */
  code: string | null;
}
