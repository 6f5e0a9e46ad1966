/**
 * What page and Python say to each other. Written by `scripts/protocol_types.py` in the build from
 * the dataclasses of `mlcweb.playground.protocol`: change those.
 */

/** Functions of Python that the page may call. */
export interface Calls {
  "cell.execute": (source: string, filename?: string, documentName?: string) => RunResult;
  "notebook.execute": (source: string, lesson: string, number: number) => RunResult;
  "notebook.restart": (lesson: string) => null;
  "notebook.close": (document: string) => null;
  "notebook.check": (exercise: string, lesson: string) => Verdict;
  "checking.check": (documentName: string, source: string) => Diagnostic[];
  "completion.live": (documentName: string) => LiveNames;
  "files.place": (files: ProgramFile[]) => null;
  "trace_view.trace_steps": (traceId: string) => TraceStep[];
  "trace_view.derive": (traceId: string, changes: Changes) => DerivedTrace;
  "trace_view.refusal": (traceId: string, changes: Changes, step: number, decision: unknown) => string | null;
  "trace_timing.begin": (traceId: string, changes: Changes) => TimingStart;
  "trace_timing.step": (timingId: string, traceId: string, changes: Changes, step: number) => StepOutcome;
  "trace_timing.finish": (timingId: string) => null;
  "trace_compare.compare": (first: string, firstChanges: Changes, second: string, secondChanges: Changes) => TraceComparison;
  "trace_export.python": (traceId: string, changes: Changes) => string;
  "trace_export.record": (traceId: string, changes: Changes, runSecs?: number[] | null) => ExportedRecord;
  "trace_export.steps_json": (traceId: string, changes: Changes) => unknown[];
  "trace_export.load": (documentName: string, title: string, steps: unknown[]) => ShownTrace;
  "access_view.explain": (programId: string, functionName?: string | null, otherId?: string | null, size?: number | null, cache?: CacheSettings) => AccessReport;
  "access_view.simulate": (programId: string, functionName: string, otherId: string | null, size: number, cache?: CacheSettings) => AccessResult;
  "gpu_view.explain": (programId: string, functionName?: string | null, otherId?: string | null) => GpuReport;
  "gpu_view.lanes": (programId: string, functionName: string, kernel: number, site: number, warp: number) => GpuLanes;
  "gpu_view.occupancy": (programId: string, functionName: string, kernel: number, tag: string, registers?: number | null) => GpuOccupancy;
  "code_view.code": (programId: string, functionName?: string | null, fused?: boolean | null) => MachineCode;
  "code_view.after_pass": (programId: string, functionName: string, index: number) => PassResult;
  "code_measure.measure": (programId: string, functionName: string, fused?: boolean | null) => CodeMeasurement;
  "search.workload": (documentName: string, moduleName: string, functionName?: string | null) => WorkloadKey;
  "search.begin": (settings: SearchSettings, earlier?: EarlierRecords | null) => SearchStart;
  "search.step": (searchId: string) => TrialUpdate | null;
  "search.details": (searchId: string, index: number) => TrialDetails;
  "search.finish": (searchId: string) => null;
  "search.forget": (searchId: string) => null;
  "search.compare": (searchId: string, index: number) => ModelTimes;
  "search.read_files": (files: Record<string, string>) => ReadRecords;
}

export type CallName = keyof Calls;

/** What Python tells while it is busy. */
export interface Events {
  "picture": Picture;
  "html": string;
  "search": SearchNews;
}

export type Changes = Record<string, unknown>;

export type FromTrialWorker = UpMessage | OutcomeMessage;

export type FromWorker = ProgressMessage | ReadyMessage | LoadedMessage | SnapshotMessage | StartThreadsMessage | EndThreadsMessage | PongMessage | FailedMessage | RestartedMessage | OutputMessage | EventMessage | AnswerMessage | RefusalMessage;

export type GpuAccessKind = "load" | "store" | "atomic";

export type GpuStepKind = "phase" | "barrier" | "loop";

export type LineChange = "same" | "added" | "removed";

export type LoopKind = "serial" | "parallel" | "vectorized" | "unrolled" | "thread";

export type NestEntry = NestFunction | NestStatement | NestLoop | NestBlock;

export type Strategy = "function" | "random" | "evolutionary" | "exhaustive";

export type Stream = "stdout" | "stderr";

export type ToTrialPool = OpenPoolMessage | RunInPoolMessage | ClosePoolMessage;

export type ToTrialWorker = WorkloadMessage | JobMessage;

export type ToWorker = StartMessage | CallMessage | InterruptMessage | PingMessage | SeenMessage | FrameMessage;

export type TrialOutcome = TrialSuccess | TrialFailure;

export type TrialState = "measured" | "recalled" | "repeated" | "failed";

/** A buffer in the simulated memory. */
export interface AccessBuffer {
  name: string;
  dtype: string;
  shape: number[];
  itemBytes: number;
  /** The byte that it begins at. */
  base: number;
  /** Whether the caller made it. */
  parameter: boolean;
}

/** Counts of accesses, and of lines. */
export interface AccessFigures {
  accesses: number;
  hits: number;
  /** Misses on lines that were never touched before. */
  first: number;
  fetched: number;
  written: number;
  /** Moved for what was fetched and written. */
  bytes: number;
}

/** A loop around a subscript: its first value and how many there are. */
export interface AccessLoop {
  name: string;
  low: number;
  extent: number;
}

/** The accesses of a function. */
export interface AccessReport {
  functions: string[];
  function: string;
  /** The program that it is compared with. */
  other: string | null;
  /** Of its schedule. */
  steps: AccessStep[];
  size: AccessSize;
  /** The text of what was run. */
  lines: string[];
  buffers: AccessBuffer[];
  sites: AccessSite[];
  stream: AccessStream;
  /** Of the whole run; null if it was not run to the end. */
  operations: number | null;
  result: AccessResult;
}

/** What a cache made of the accesses. */
export interface AccessResult {
  /** Of each access, as uint8, packed. */
  hit: string;
  /** For each access the line that had to go, or -1, as int32, packed. */
  evicted: string;
  /** One for each site. */
  rows: AccessFigures[];
  total: AccessFigures;
  /** On the program, or on what is different from the other. */
  sentences: string[];
  other: OtherFigures | null;
}

/** A subscript in the text of the program. */
export interface AccessSite {
  /** Its number among the buffers. */
  buffer: number;
  write: boolean;
  /** Such as "A[vi, vk]". */
  text: string;
  line: number;
  block: string;
  /** Outermost first. */
  loops: AccessLoop[];
  /** "unit", "stride n", "same", "irregular" or "once", in `loop`. */
  badge: string;
  /** The innermost with more than one iteration. */
  loop: string | null;
  /** Of each loop. */
  steps: AccessStride[];
}

/** The largest size left, 0 for the program as it is, and a sentence on what that means. */
export interface AccessSize {
  most: number;
  note: string;
}

/** A step of a schedule whose program can be compared with. */
export interface AccessStep {
  id: string;
  title: string;
}

/** All accesses in order, packed. */
export interface AccessStream {
  count: number;
  /** The subscript that made each, as uint16. */
  site: string;
  /** The element touched, counted row by row, as uint32. */
  element: string;
  /** The iterations of the loops around, as digits of one number, as float64. */
  point: string;
}

/** Elements that an iteration of a loop moves on; null where they differ. */
export interface AccessStride {
  loop: string;
  elements: number | null;
}

/** What a call returns. */
export interface AnswerMessage {
  type: "answer";
  id: number;
  value: unknown;
}

/** The simulated cache, in bytes; 0 ways for one set of all lines. */
export interface CacheSettings {
  line: number;
  size: number;
  ways: number;
}

/** Fixed work that tells how fast the machine is. */
export interface CalibrationWork {
  /** A module with a loop. */
  code: Uint8Array;
  /** Iterations of the loop that are timed. */
  turns: number;
  /** Milliseconds that the clock needs; the work is repeated where it is faster. */
  minMs: number;
}

/** Call a function; `look`: a view looks something up, and what the reader asks comes first. */
export interface CallMessage {
  type: "call";
  id: number;
  name: CallName;
  args: unknown[];
  look: boolean;
}

/** An owner needs its workers no more. */
export interface ClosePoolMessage {
  type: "close";
  owner: number;
}

/** Why there is no machine code, and at which line of the TensorIR. */
export interface CodeError {
  message: string;
  line: number | null;
}

/** How fast a function is. */
export interface CodeMeasurement {
  /** A call, the median of `repeats`. */
  seconds: number;
  repeats: number[];
  operations: number;
  /** Of all arguments, each once. */
  bytes: number;
  /** Operations a second. */
  rate: number;
  /** Whether the code uses fused multiply-adds. */
  fused: boolean;
  peak: MachinePeak;
  /** Seconds of a call that has nothing to do. */
  call: number;
  /** In seconds. */
  clockStep: number;
  /** Null outside of browsers. */
  isolated: boolean | null;
}

/** How much code it is. */
export interface CodeSize {
  /** Of the module. */
  bytes: number;
  /** Of the function. */
  instructions: number;
  /** How many of them are vector instructions. */
  simd: number;
  loop: LoopSize | null;
}

/** A trace with some decisions replaced, as far as its steps can be done. */
export interface DerivedTrace {
  instructions: Instruction[];
  steps: TraceStep[];
  controls: TraceControl[];
  failure: TraceFailure | null;
}

/** What is wrong with a range of a program's text; columns in UTF-16 units, as editors count. */
export interface Diagnostic extends TextRange {
  message: string;
  severity: "error" | "warning";
  /** Where there is an obvious one. */
  fix: Fix | null;
}

/** A line of two texts side by side. */
export interface DiffLine {
  kind: LineChange;
  text: string;
}

/** Output that was left out, because there was too much of it. */
export interface Dropped {
  lines: number;
  characters: number;
}

/** A whole record of an earlier search, and the hash of its program, where it is known. */
export interface EarlierRecord {
  record: string;
  program: string | null;
}

/** What earlier searches measured of a workload. */
export interface EarlierRecords {
  /** Hashes, and seconds (null where it failed). */
  programs: [string, number | null][];
  /** The fastest as a whole. */
  lines: EarlierRecord[];
  /** How many the page left out, because they are damaged. */
  unreadable: number;
}

/** End all threads, and tell so in their slots. */
export interface EndThreadsMessage {
  type: "endThreads";
}

/** Python tells of something while it is busy: one of `Events`, or what a program tells. */
export interface EventMessage {
  type: "event";
  name: string;
  data: unknown;
}

/** A trace as TVM's databases keep it. */
export interface ExportedRecord {
  /** A line of `database_workload.json`. */
  workload: unknown;
  /** One of `database_tuning_record.json`, but for the number of that line in front. */
  record: unknown;
}

/** Python did not start, or is broken. */
export interface FailedMessage {
  type: "failed";
  message: string;
}

/** An edit that would mend an error: `text` in the place of a range. */
export interface Fix extends TextRange {
  title: string;
  text: string;
}

/** Where Python is another frame's: join in, stop what this frame runs there, interrupt what views look up, end Python. */
export interface FrameMessage {
  type: "join" | "stop" | "makeWay" | "end";
}

/** What became of a kernel that was asked for under this number. */
export interface FromTrialPool {
  id: number;
  outcome: TrialOutcome;
}

/** Fused multiply-adds: whether there are any, they may be used, and how many are. */
export interface FusedUse {
  available: boolean;
  on: boolean;
  used: number;
}

/** An axis of blocks or threads: its tag, the loop that is bound to it, and how long it is. */
export interface GpuAxis {
  tag: string;
  loop: string;
  extent: number;
}

/** What an access costs in a launch. */
export interface GpuCost {
  /** Of warps. */
  requests: number;
  /** Lanes that take part, in all requests. */
  active: number;
  /** Transactions of 32 bytes with global memory. */
  sectors: number;
  /** Through the banks of shared memory. */
  passes: number;
  /** The fewest transactions or passes. */
  ideal: number;
  /** In one request: transactions, or words that one bank has to give. */
  least: number;
  /** In one request: transactions, or words that one bank has to give. */
  most: number;
  /** Whether all were counted, rather than a sample. */
  exact: boolean;
}

/** Which thread fetches which element of a shared buffer, in the first block. */
export interface GpuFetch {
  /** Number of the store. */
  site: number;
  source: string;
  buffer: string;
  /** Of the buffer, as its rows are written. */
  columns: number;
  /** For each element, -1 for none. */
  threads: number[];
  /** For each element, which of the thread's stores it is. */
  iterations: number[];
  sentence: string;
}

/** A launch of threads. */
export interface GpuKernel {
  name: string;
  /** Along x, y and z. */
  grid: number[];
  /** Along x, y and z. */
  block: number[];
  axes: GpuAxis[];
  threads: number;
  warps: number;
  sharedBytes: number;
  /** Of a thread, estimated. */
  registers: number;
  /** Of the launch, null if not known. */
  operations: number | null;
  /** Of the arrays, once for reading and once for writing. */
  argumentBytes: number;
  /** By all transactions. */
  movedBytes: number;
  sites: GpuSite[];
  steps: GpuStep[];
  fetches: GpuFetch[];
}

/** What the lanes of a warp of the first block touch, in the first iteration of all loops. */
export interface GpuLanes {
  warp: number;
  bytes: number;
  shared: boolean;
  /** In bytes from the beginning of the buffer; null for a lane that takes no part. */
  addresses: (number | null)[];
  /** Sectors of 32 bytes that are moved, or, for shared memory, the words at a time that the busiest bank gives. */
  units: number;
  sentence: string;
}

/** Blocks at a time, as far as one thing goes. */
export interface GpuLimit {
  name: string;
  blocks: number;
}

/** How full a multiprocessor is. */
export interface GpuOccupancy {
  tag: string;
  arch: string;
  registers: number;
  /** At a time. */
  blocks: number;
  /** At a time. */
  warps: number;
  /** Warps that it can hold. */
  most: number;
  /** The tightest first. */
  limits: GpuLimit[];
  sentence: string;
  /** Operations on float32 a second, null if not known. */
  peak: number | null;
  /** Bytes a second, null if not known. */
  bandwidth: number | null;
}

/** The kernels of a function. */
export interface GpuReport {
  functions: string[];
  function: string;
  /** Programs that it can be compared with. */
  others: string[];
  /** The one that it is compared with. */
  other: string | null;
  /** Of its schedule, to compare with, too. */
  steps: AccessStep[];
  /** The text of the function. */
  lines: string[];
  kernels: GpuKernel[];
  /** Why there are no kernels, and what to do. */
  problem: string;
  /** On the kernels, or on what differs from the other program. */
  sentences: string[];
  /** Of GPUs. */
  tags: string[];
  tag: string;
}

/** An access of a kernel. */
export interface GpuSite {
  buffer: string;
  dtype: string;
  kind: GpuAccessKind;
  shared: boolean;
  /** Such as "A[vi, vk]". */
  text: string;
  /** The element, by threadIdx, blockIdx and loops. */
  index: string;
  /** In the program; null if it is not known. */
  line: number | null;
  /** Of one thread. */
  bytes: number;
  phase: number;
  /** Null where the addresses depend on data. */
  cost: GpuCost | null;
  /** What is to be said about the counts. */
  note: string;
}

/** What the threads of a block do, in order: a phase, a barrier, or a loop around what follows with one more in `depth`. */
export interface GpuStep {
  kind: GpuStepKind;
  depth: number;
  /** Its name and iterations, for a loop. */
  loop: string;
  /** How often that is in all, for each block. */
  times: number;
  /** Numbers of the accesses of a phase. */
  sites: number[];
}

/** An instruction of a trace. */
export interface Instruction {
  /** From 1. */
  index: number;
  /** As Python, with its decision. */
  text: string;
  /** The method's. */
  name: string;
  /** What a sampling instruction decided, as Python. */
  decision: string | null;
  isSampling: boolean;
}

/** Python waits for something, perhaps: it is to look whether it is interrupted. */
export interface InterruptMessage {
  type: "interrupt";
}

/** Measure a kernel. */
export interface JobMessage {
  type: "run";
  job: TrialJob;
}

/** Names of the program that ran last, for the editor to offer: each once, in the order of the text. */
export interface LiveNames {
  /** With the names of their classes; null where the editor knows nothing of it. */
  variables: Record<string, string | null>;
  functions: string[];
  blocks: string[];
  loops: string[];
  buffers: string[];
}

/** What came behind, or what a program imports, is there, too. */
export interface LoadedMessage {
  type: "loaded";
}

/** The innermost loop that most instructions run in; `line` is one of the loops' text. */
export interface LoopSize {
  name: string;
  line: number | null;
  instructions: number;
  simd: number;
}

/** What a function becomes. Where there is no machine code, `error` says why, and what is missing is null. */
export interface MachineCode {
  functions: string[];
  function: string;
  tensorir: SourceText;
  fused: FusedUse;
  /** Sentences on what is different here. */
  notes: string[];
  passes: PassName[] | null;
  /** The loops; they come from lines of `tensorir`. */
  lowered: TracedText | null;
  /** The instructions; they come from lines of `lowered`. */
  wat: TracedText | null;
  size: CodeSize | null;
  error: CodeError | null;
}

/** What one thread reaches, for numbers of one type. `flops` are operations a second of vector multiplications and additions on registers; `fusedFlops` the same for relaxed (fused) multiply-adds, null where the engine has none. `memoryBandwidth` are bytes a second, read and written together, of copying arrays longer than the caches; `cacheBandwidth` of arrays in the innermost cache. */
export interface MachinePeak {
  dtype: string;
  flops: number;
  fusedFlops: number | null;
  memoryBandwidth: number;
  cacheBandwidth: number;
}

/** A parameter of a model, and where its content is from: a variable of the program, or "random". */
export interface ModelInput {
  name: string;
  source: string;
}

/** Seconds of a model before and after one of its functions is replaced; `entry` is its graph function. */
export interface ModelTimes {
  before: number;
  after: number;
  entry: string;
  inputs: ModelInput[];
}

/** A block. */
export interface NestBlock {
  name: string;
  iterators: NestIterator[];
  /** Its predicate. */
  where: string | null;
  reads: NestRegion[];
  writes: NestRegion[];
  init: string | null;
  statement: string | null;
  /** What it allocates, in words. */
  buffers: string[];
  /** Its annotations. */
  notes: string[];
  /** What the step did to it: "new", "moved" or "edited". */
  change: string | null;
  body: NestEntry[];
  kind: "block";
}

/** A function of the program. */
export interface NestFunction {
  name: string;
  body: NestEntry[];
  kind: "function";
}

/** An iterator of a block: spatial, reduce, opaque, scan or thread. */
export interface NestIterator {
  name: string;
  type: string;
  value: string;
}

/** A loop. */
export interface NestLoop {
  name: string;
  extent: string;
  how: LoopKind;
  /** The thread axis that it is bound to. */
  thread: string | null;
  /** Its annotations. */
  notes: string[];
  /** Where it came from, such as "outer part of j, 16 of 128". */
  origin: string;
  /** Numbers of the loops that it goes back to. */
  colours: number[];
  /** What the step did to it: "new", "moved", "edited", or what it has become. */
  change: string | null;
  body: NestEntry[];
  kind: "loop";
}

/** What a block reads or writes. */
export interface NestRegion {
  text: string;
  buffer: string;
  /** Of the buffer's memory. */
  scope: string;
  /** How many; null where that is not constant. */
  elements: number | null;
}

/** A statement that is neither a loop nor a block. */
export interface NestStatement {
  text: string;
  body: NestEntry[];
  kind: "statement";
}

/** Have workers ready for an owner: several searches may hold some at one time. */
export interface OpenPoolMessage {
  type: "open";
  owner: number;
  workload: TrialWorkload;
  workers: number;
  limitMs: number;
}

/** The program that is compared with. */
export interface OtherFigures {
  total: AccessFigures;
}

/** What became of a kernel. */
export interface OutcomeMessage {
  type: "outcome";
  outcome: TrialOutcome;
}

/** What a program wrote or showed. */
export interface OutputChunk {
  stream: Stream;
  text: string;
  /** What was left out before it. */
  dropped?: Dropped;
  /** In the place of a text. */
  picture?: Picture;
  /** A page of HTML in the place of a text, to be shown in a frame that may do nothing. */
  html?: string;
}

/** What the program that runs has written. */
export interface OutputMessage {
  type: "output";
  chunks: OutputChunk[];
  size: number;
}

/** A line after a pass of lowering, and the lines of the TensorIR that it was made from. */
export interface PassLine extends DiffLine {
  origins: number[];
}

/** A pass of lowering, and whether it changed the function. */
export interface PassName {
  name: string;
  changed: boolean;
}

/** The loops after a pass, against those before it. */
export interface PassResult {
  lines: PassLine[];
}

/** A picture that a program shows, such as a figure; its size in the page's pixels. */
export interface Picture {
  /** A `data:` URL. */
  url: string;
  width: number;
  height: number;
  description: string;
}

/** Asks for a `PongMessage`, which comes once no program blocks the thread. */
export interface PingMessage {
  type: "ping";
}

/** The answer to a `PingMessage`. */
export interface PongMessage {
  type: "pong";
}

/** A file that a program may import; its name has no folders. */
export interface ProgramFile {
  name: string;
  text: string;
}

/** A search that a program of a document runs; `planned` trials, where that is known. */
export interface ProgramSearch extends SearchStart {
  document: string;
  planned: number | null;
  workload: WorkloadKey;
}

/** A step of the start, or of fetching what a program imports. */
export interface ProgressMessage {
  type: "progress";
  stage: string;
  fraction: number;
}

/** Files of records, read, and sentences about lines that were skipped. */
export interface ReadRecords {
  groups: RecordGroup[];
  warnings: string[];
}

/** Python takes calls. */
export interface ReadyMessage {
  type: "ready";
  runtime: RuntimeFacts;
}

/** Records of one workload. */
export interface RecordGroup extends WorkloadKey {
  records: StoredRecord[];
}

/** Why a call failed. */
export interface RefusalMessage {
  type: "refusal";
  id: number;
  message: string;
  stopped?: boolean;
}

/** Where Python is another frame's: it was ended there. */
export interface RestartedMessage {
  type: "restarted";
  reason: string;
}

/** An exception that ended a program. */
export interface RunError {
  /** The name of its class. */
  kind: string;
  message: string;
  /** The traceback, with the program's own frames only. */
  text: string;
  diagnostics: Diagnostic[];
}

/** Measure a kernel of an owner. */
export interface RunInPoolMessage {
  type: "run";
  owner: number;
  id: number;
  job: TrialJob;
  reply?: SharedReply;
}

/** What a program left behind, also where it did not get to its end. */
export interface RunResult {
  /** Where it ran. */
  document: string;
  ok: boolean;
  error: RunError | null;
  elapsedMs: number;
  modules: ShownModule[];
  traces: ShownTrace[];
  /** The latest last. */
  programs: ShownProgram[];
  /** Functions that take a schedule. */
  searchFunctions: ScheduleFunction[];
  searchModules: SearchModule[];
}

/** The Python that has started. */
export interface RuntimeFacts {
  pyodide: string;
  python: string;
  mlcweb: string;
  isolated: boolean;
  /** Whether its memory was restored from an earlier visit. */
  restored: boolean;
  /** From the worker's start to ready. */
  milliseconds: number;
}

/** A function that takes a schedule, and the line at which it begins. */
export interface ScheduleFunction {
  name: string;
  line: number;
}

/** A module of the program. */
export interface SearchModule {
  name: string;
  /** Its TensorIR functions. */
  functions: string[];
  /** Whether it has a graph function "main", which can be timed as a whole. */
  model: boolean;
}

/** What Python tells of a search that a program runs by itself; `start` comes with the first message. */
export interface SearchNews {
  id: string;
  start: ProgramSearch | null;
  trials: TrialUpdate[];
  over: boolean;
}

/** What a search is asked to do. */
export interface SearchSettings {
  document: string;
  /** A module, or a single function, of the document. */
  module: string;
  /** Which TensorIR function of the module; the only one, or "main", where null. */
  function: string | null;
  strategy: Strategy;
  /** For the strategy "function": a function of the program that takes a schedule. */
  scheduleFunction: string | null;
  /** The same seed and the same times give the same search. */
  seed: number;
  /** Programs to try; without end where null. */
  trials: number | null;
  /** Time to search for; without end where null. */
  seconds: number | null;
  /** Programs measured at one time; by default what suits the machine. */
  workers: number | null;
}

/** A search that has begun. */
export interface SearchStart {
  id: string;
  title: string;
  /** The time of the unscheduled program. */
  baselineSeconds: number | null;
  /** How many trials are measured at one time. */
  workers: number;
  /** Arithmetic operations of a call; 0 where they cannot be counted. */
  operations: number;
  /** How many earlier records were left out, because they are damaged or of another version. */
  unreadable: number;
}

/** Where Python is another frame's: output of that size was seen. */
export interface SeenMessage {
  type: "seen";
  size: number;
}

/** Shared memory for an answer that cannot come as a message. */
export interface SharedReply {
  bell: SharedArrayBuffer;
  answer: SharedArrayBuffer;
}

/** A module that a program shows, as text. */
export interface ShownModule {
  id: string;
  title: string;
  source: string;
}

/** A module whose machine code and accesses can be looked at. */
export interface ShownProgram {
  id: string;
  title: string;
}

/** A trace that the page can ask for. */
export interface ShownTrace {
  id: string;
  title: string;
  steps: Instruction[];
}

/** Python's memory, for the page to store under that key; it comes before any program runs. */
export interface SnapshotMessage {
  type: "snapshot";
  key: string;
  memory: Uint8Array;
}

/** The function as it was given. */
export interface SourceText {
  lines: string[];
  /** For each line the lines, from 1, whose code is meant by it. */
  standsFor: number[][];
}

/** Start Python; `backlog` is the memory of a `Backlog`. */
export interface StartMessage {
  type: "start";
  base: string;
  interrupt: Uint8Array | null;
  backlog: SharedArrayBuffer | null;
  trials: MessagePort;
}

/** Start threads that run parallel loops on this memory, those from the number `first` to before `count`; `slots` is where their tasks are. */
export interface StartThreadsMessage {
  type: "startThreads";
  memory: WebAssemblyMemory;
  slots: SharedArrayBuffer;
  first: number;
  count: number;
}

/** How long the program after a step takes, or why that is not known. */
export interface StepOutcome {
  state: "measured" | "failed" | "stopped";
  /** A call, the median of `repeats`. */
  seconds: number | null;
  repeats: number[];
  /** It cannot be built, takes too long, or computes something else than before any step. */
  reason: string | null;
}

/** A record as the page stores it. */
export interface StoredRecord {
  /** That of its schedule: a later time of it takes the place of the first. */
  id: string;
  /** The key of its workload. */
  workload: string;
  /** The hash of the scheduled program, where it is known. */
  program: string | null;
  /** Null for a schedule that failed. */
  seconds: number | null;
  /** As TVM's file of records holds it, without the workload's number. */
  record: string;
}

/** A range of a program's text: lines from 1, columns from 0, the end exclusive. */
export interface TextRange {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
}

/** To a thread: run the tasks of a slot on this memory, and hold a lock until the end. */
export interface ThreadMessage {
  memory: WebAssemblyMemory;
  slots: SharedArrayBuffer;
  number: number;
  lock: string;
}

/** Workers that time the steps of a trace, and what its first program took. */
export interface TimingStart {
  id: string;
  outcome: StepOutcome;
}

/** Two traces: pairs of steps, and how the programs differ in the end. */
export interface TraceComparison {
  /** Numbers of steps; null where the other trace has no such step. */
  rows: [number | null, number | null][];
  /** Rows whose steps are the same but for what they decide. */
  decided: number[];
  equal: boolean;
  /** The texts, line by line with "-", "+" or a blank in front. */
  diff: string;
}

/** A decision of a trace, and what it could be instead. */
export interface TraceControl {
  step: number;
  kind: "tile" | "choice" | "location" | "factors";
  /** What is decided. */
  label: string;
  /** That in force. */
  decision: unknown;
  /** That of the trace. */
  recorded: unknown;
  changed: boolean;
  parts: TracePart[];
}

/** A step that cannot be done, and why. */
export interface TraceFailure {
  step: number;
  message: string;
}

/** A value that a part of a decision could have. */
export interface TraceOption {
  text: string;
  /** The whole decision that it would make. */
  decision: unknown;
  /** Why it cannot be chosen, as far as this step goes. */
  reason: string | null;
}

/** A number of a decision; without options it follows from the others. */
export interface TracePart {
  name: string;
  value: string;
  options: TraceOption[];
}

/** What a step of a trace did; step 0 is the program before any. Where the step leaves the program as it was, `module`, `diff`, `nest` and `gone` are null. */
export interface TraceStep {
  index: number;
  /** A sentence without its subject: "splits j (128) into …". */
  words: string;
  /** Whether the program is another one after it. */
  changed: boolean;
  /** The program's text. */
  module: string | null;
  /** The lines before and after, with "-", "+" or a blank in front. */
  diff: string | null;
  nest: NestFunction[] | null;
  /** Loops and blocks that are no more. */
  gone: string[] | null;
}

/** Text whose lines know which lines, from 1, of an earlier text they were made from. */
export interface TracedText {
  lines: string[];
  origins: number[][];
}

/** A buffer: its content before a call and, if known, after a correct call. */
export interface TrialArray {
  dtype: string;
  input: Uint8Array;
  /** How far floating-point numbers may be from the expected ones. */
  tolerance: number;
  expected?: Uint8Array;
}

/** One trial, looked at. */
export interface TrialDetails {
  trace: ShownTrace;
  source: string;
  /** The program before any step, and the trial's, line by line with "-", "+" or a blank in front. */
  diff: string;
  /** Python that builds its schedule again. */
  code: string | null;
  /** Python that also replaces the function in its module. */
  replacing: string | null;
}

/** Why there is no time. */
export interface TrialFailure {
  ok: false;
  /** The name of an error; "TimeoutError", "WorkerDied", "OutOfMemory" and "Stopped" are ours. */
  kind: string;
  message: string;
  stack: string;
}

/** A WebAssembly module, what to call in it, and how that is timed. */
export interface TrialJob {
  /** It imports the memory ("env", "memory") and nothing else. */
  code: Uint8Array;
  /** The export that runs the kernel: takes the addresses of the buffers, and that of scratch memory. */
  entry: string;
  /** The export that runs it as often as its first argument says. */
  repeated: string;
  scratchBytes: number;
  /** How many, but no more than `fewest` once they took longer than `enoughMs`. */
  batches: number;
  fewest: number;
  /** Milliseconds that a batch takes at least. */
  minMs: number;
  enoughMs: number;
  /** If the first calls all take longer than so many milliseconds, they are all that is timed; may be infinite. */
  earlyStopMs: number;
}

/** What a trial came to. */
export interface TrialResult {
  index: number;
  seed: number;
  state: TrialState;
  /** The median of `repeats`, which are seconds per call of each batch. */
  seconds: number | null;
  repeats: number[];
  /** Why a failed trial failed. */
  reason: string | null;
  /** The earlier trial with the same program, whose time a repeated trial takes over. */
  sameAs: number | null;
  /** Whether it was measured once more at the end, with nothing beside it. */
  confirmed: boolean;
  /** What the cost model thought of it before it was measured; larger is faster. */
  predicted: number | null;
  round: number;
}

/** What a kernel left and took. */
export interface TrialSuccess {
  ok: true;
  /** Per call, for each batch. */
  seconds: number[];
  /** What the fixed work took before the first batch and after each; empty where it was not timed. */
  paces: number[];
  /** The buffers after the first call; missing if all of them are as expected. */
  arrays?: Uint8Array[];
}

/** A trial as Python tells it; what was told before is null. */
export interface TrialUpdate extends TrialResult {
  decisions: string[] | null;
  /** The number of its design space. */
  space: number | null;
  /** With the first trial of a design space, for each decision the names of its numbers, which are those that the trace's controls have. */
  labels: string[][] | null;
  /** What the page stores. */
  record: StoredRecord | null;
}

/** What the kernels of a search have in common. */
export interface TrialWorkload {
  pace: CalibrationWork;
  arrays: TrialArray[];
}

/** A light worker has started. */
export interface UpMessage {
  type: "up";
}

/** Whether an exercise is solved, and what to tell its reader. */
export interface Verdict {
  passed: boolean;
  message: string;
}

/** How the page's storage knows a program; `line` is its line of TVM's file of workloads. */
export interface WorkloadKey {
  key: string;
  line: string;
}

/** The buffers of the kernels to come. */
export interface WorkloadMessage {
  type: "workload";
  workload: TrialWorkload;
}

export const FIRST_CACHE: CacheSettings = {"line": 32, "size": 512, "ways": 4};

export const MAX_SEARCHES = 8 as const;

export const VECTOR_PREFIXES = ["v128.", "i8x16.", "i16x8.", "i32x4.", "i64x2.", "f32x4.", "f64x2."] as const;
