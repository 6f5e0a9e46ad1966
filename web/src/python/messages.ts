/**
 * What the page, the worker that Python runs in, its threads and the light workers of trials say to
 * each other.
 */
import type { Calls, Picture, TrialJob, TrialOutcome, TrialWorkload } from "./wire";

/** A function of Python that the page may call. */
export type CallName = keyof Calls;

export type Stream = "stdout" | "stderr";

/** Output that was left out, because there was too much of it. */
export interface Dropped {
  lines: number;
  /** What the lines, pictures and pages of HTML count for together. */
  characters: number;
  pictures?: number;
  pages?: number;
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

export type ToWorker =
  /** Start Python; `backlog` is the memory of a `Backlog`, `gpu` the port of a `GpuStarter`. */
  | {
      type: "start";
      base: string;
      interrupt: Uint8Array | null;
      backlog: SharedArrayBuffer | null;
      trials: MessagePort;
      gpu: MessagePort | null;
    }
  /** Call a function; `look`: a view looks something up, and what the reader asks comes first. */
  | { type: "call"; id: number; name: CallName; args: unknown[]; look: boolean }
  /** Python waits for something, perhaps: it is to look whether it is interrupted. */
  | { type: "interrupt" }
  /** Asks for "pong", which comes once no program blocks the thread. */
  | { type: "ping" }
  /** Where Python is another frame's: output of that size was seen. */
  | { type: "seen"; size: number }
  /** Where Python is another frame's: join in, stop what this frame runs there, interrupt what views
   * look up, end Python. */
  | { type: "join" | "stop" | "makeWay" | "end" };

/** Start threads that run parallel loops on this memory, those from the number `first` to before
 * `count`; `slots` is where their tasks are. */
export interface StartThreadsMessage {
  type: "startThreads";
  memory: WebAssembly.Memory;
  slots: SharedArrayBuffer;
  first: number;
  count: number;
}

/** End all threads, and tell so in their slots. */
export interface EndThreadsMessage {
  type: "endThreads";
}

export type FromWorker =
  /** A step of the start, or of fetching what a program imports. */
  | { type: "progress"; stage: string; fraction: number }
  /** Python takes calls. */
  | { type: "ready"; runtime: RuntimeFacts }
  /** What came behind, or what a program imports, is there, too. */
  | { type: "loaded" }
  /** Python's memory, for the page to store under that key; it comes before any program runs. */
  | { type: "snapshot"; key: string; memory: Uint8Array }
  | StartThreadsMessage
  | EndThreadsMessage
  | { type: "pong" }
  /** Python did not start, or is broken. */
  | { type: "failed"; message: string }
  /** Where Python is another frame's: it was ended there. */
  | { type: "restarted"; reason: string }
  /** What the program that runs has written. */
  | { type: "output"; chunks: OutputChunk[]; size: number }
  /** Python tells of something while it is busy: one of `Events`, or what a program tells. */
  | { type: "event"; name: string; data: unknown }
  /** What a call returns. */
  | { type: "answer"; id: number; value: unknown }
  /** Why a call failed. */
  | { type: "refusal"; id: number; message: string; stopped?: boolean };

/** To a thread: run the tasks of a slot on this memory, and hold a lock until the end. */
export interface ThreadMessage {
  memory: WebAssembly.Memory;
  slots: SharedArrayBuffer;
  number: number;
  lock: string;
}

export type ToTrialWorker =
  /** The buffers of the kernels to come. */
  | { type: "workload"; workload: TrialWorkload }
  /** Measure a kernel. */
  | { type: "run"; job: TrialJob };

/** A light worker has started, or tells what became of a kernel. */
export type FromTrialWorker = { type: "up" } | { type: "outcome"; outcome: TrialOutcome };

/** Shared memory for an answer that cannot come as a message. */
export interface SharedReply {
  bell: SharedArrayBuffer;
  answer: SharedArrayBuffer;
}

export type ToTrialPool =
  /** Have workers ready for an owner: several searches may hold some at one time. */
  | {
      type: "open";
      owner: number;
      workload: TrialWorkload;
      workers: number;
      limitMs: number;
    }
  /** Measure a kernel of an owner. */
  | { type: "run"; owner: number; id: number; job: TrialJob; reply?: SharedReply }
  /** An owner needs its workers no more. */
  | { type: "close"; owner: number };

/** What became of a kernel that was asked for under this number. */
export interface FromTrialPool {
  id: number;
  outcome: TrialOutcome;
}
