/** The way to a Python: a worker of this page's own, or a line to that of another frame. */

import { GpuStarter } from "../gpu/starter";
import gpuScript from "../gpu/worker.ts?worker&url";
import { Backlog } from "./backlog";
import { confinedWorker } from "./confined";
import type { ToWorker } from "./messages";
import script from "./worker.ts?worker&url";

export interface Connection {
  /** Milliseconds that an interrupted program has to come to an end before Python is ended. */
  readonly grace: number;
  post(message: ToWorker, transfer?: Transferable[]): void;
  /** Whether this page has the worker itself, and so looks after it. */
  readonly own: boolean;
  /** Output of that size was seen: more may come. */
  seen(size: number): void;
  /** Let programs run on that were interrupted: called before a call that is the only one. */
  allow(): void;
  /** Ask what runs to stop; false where only ending Python stops it. */
  interrupt(): boolean;
  /**
   * Ask look-ups to end for now, of other frames, too; `looking` says whether this page waits for one.
   * Returns whether that comes to an end.
   */
  makeWay(looking: boolean): boolean;
  /** End Python; where it is another frame's, ask for that. */
  end(): void;
}

/** What comes back over a connection. */
export interface Receiver {
  /** Something has come; programs run at the other end, so it may be anything. */
  receive(message: unknown): void;
  fail(reason: string): void;
}

export type Connect = (receiver: Receiver, base: string, trials: MessagePort) => Connection;

/** Whether memory can be shared between threads: then a program can be interrupted. */
export function isolated(): boolean {
  return typeof SharedArrayBuffer !== "undefined" && globalThis.crossOriginIsolated === true;
}

/** Start a worker that loads Python with everything from `base`. */
export function startWorker(receiver: Receiver, base: string, trials: MessagePort): Connection {
  const worker = confinedWorker(script, "python");
  const signal = isolated() ? new Uint8Array(new SharedArrayBuffer(1)) : null;
  const memory = isolated() ? new SharedArrayBuffer(4) : null;
  const backlog = memory && new Backlog(memory);
  const starter = isolated() ? new GpuStarter(() => confinedWorker(gpuScript, "gpu")) : null;
  const gpu = starter?.port ?? null;
  worker.onmessage = ({ data }: MessageEvent<unknown>) => receiver.receive(data);
  worker.onerror = (event) => receiver.fail(event.message || "the worker's script did not load");
  const start: ToWorker = { type: "start", base, interrupt: signal, backlog: memory, trials, gpu };
  worker.postMessage(start, gpu ? [trials, gpu] : [trials]);
  const interrupt = (): boolean => {
    if (!signal) return false;
    signal.set([2]);
    // Python that runs looks by itself; one that waits would not before it goes on.
    worker.postMessage({ type: "interrupt" } satisfies ToWorker);
    return true;
  };
  return {
    grace: 1000,
    own: true,
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    seen: (size) => backlog?.remove(size),
    allow: () => signal?.set([0]),
    interrupt,
    makeWay: (looking) => looking && interrupt(),
    end: () => {
      worker.terminate();
      starter?.end();
    },
  };
}
