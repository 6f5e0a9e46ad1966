/**
 * What Python, the pool of light workers and the workers say to each other: plain, cloneable data.
 * What is not there is `undefined`, which is Python's None.
 */

/** A buffer of a kernel: its content before a call and, if known, after a correct call. */
export interface TrialArray {
  dtype: string;
  input: Uint8Array;
  expected: Uint8Array | undefined;
  /** How far floating numbers may be from the expected ones. */
  tolerance: number;
}

/** Fixed work that tells how fast the machine is: a module, and the turns of its loop to be timed. */
export interface CalibrationWork {
  code: Uint8Array;
  turns: number;
  /** Milliseconds that it has to take for the clock; it is done several times where it is faster. */
  minMs: number;
}

/** What the kernels of a search have in common. */
export interface Workload {
  pace: CalibrationWork;
  arrays: TrialArray[];
}

export interface TrialJob {
  /** A module that imports the memory ("env", "memory") and uses nothing else of the outside. */
  code: Uint8Array;
  /** The export that runs the kernel: takes the buffers' addresses, and that of scratch memory. */
  entry: string;
  /** The export that runs it as often as its first argument says. */
  repeated: string;
  scratchBytes: number;
  batches: number;
  /** No more batches than these where they take longer than `enoughMs`. */
  fewest: number;
  enoughMs: number;
  /** Milliseconds that a batch takes at least. */
  minMs: number;
  /** A kernel whose calls take longer is not worth more than a few of them; may be infinite. */
  earlyStopMs: number;
}

export interface TrialSuccess {
  ok: true;
  /** Seconds per call, for each batch. */
  seconds: number[];
  /** What the fixed work took before the first batch and after each; empty where it was not timed. */
  paces: number[];
  /** The buffers after the first call; undefined if all of them are as expected. */
  arrays: Uint8Array[] | undefined;
}

/** `kind` is an error's name; "TimeoutError", "WorkerDied", "OutOfMemory" and "Stopped" are ours. */
export interface TrialFailure {
  ok: false;
  kind: string;
  message: string;
  stack: string;
}

export type TrialOutcome = TrialSuccess | TrialFailure;

export type ToTrialWorker =
  | { type: "workload"; workload: Workload }
  | { type: "run"; job: TrialJob };
export type FromTrialWorker = { type: "up" } | { type: "outcome"; outcome: TrialOutcome };

/** Shared memory for an answer that cannot come as a message. */
export interface SharedReply {
  bell: SharedArrayBuffer;
  answer: SharedArrayBuffer;
}

/** `owner` is who asked for workers: several searches may hold some at one time. */
export type ToTrialPool =
  | { type: "open"; owner: number; workload: Workload; workers: number; limitMs: number }
  | { type: "run"; owner: number; id: number; job: TrialJob; reply?: SharedReply }
  | { type: "close"; owner: number };
export type FromTrialPool = { id: number; outcome: TrialOutcome };

export function failure(kind: string, message: string, stack = ""): TrialFailure {
  return { ok: false, kind, message, stack };
}
