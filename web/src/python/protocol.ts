/** What the page and its Python worker say to each other. All of it is plain, cloneable data. What
 * Python itself is told and tells is in `wire.ts`. */

import type { Calls, Picture } from "./wire";

export type * from "./wire";

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
  /** A page of HTML in the place of a text, to be shown in a frame that may do nothing. */
  html?: string;
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
  /** `look`: a view looks something up; what the reader asks comes first. */
  | { type: "call"; id: number; name: CallName; args: unknown[]; look: boolean }
  /** Python waits for something, perhaps: it is to look whether it is interrupted. */
  | { type: "interrupt" }
  /** Where Python is another frame's: join in, output was seen, stop what this frame runs there, interrupt
   * what views look up, end Python. */
  | { type: "join" }
  | { type: "seen"; size: number }
  | { type: "stop" }
  | { type: "makeWay" }
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

export type CallName = keyof Calls;
