/** The page's side of the Python worker: calls with answers, Stop, and starting again. */

import { TrialPool } from "../trials/pool";
import type { CallName, Calls, FromWorker, OutputChunk, RuntimeFacts, ToWorker } from "./protocol";

/** Milliseconds that an interrupted program has to come to an end before Python is ended. */
const GRACE = 1000;

export type SessionState = "loading" | "ready" | "failed";

/** A call that was stopped by ending Python. */
export class Stopped extends Error {}

export interface SessionEvents {
  state: (state: SessionState) => void;
  progress: (stage: string, fraction: number) => void;
  output: (chunks: OutputChunk[]) => void;
  /** Python's memory is kept for the next start, or could not be. */
  kept: (done: boolean) => void;
  /** Python has been ended and starts anew; `reason` is a sentence for the reader. */
  restarted: (reason: string) => void;
}

interface Pending {
  message: ToWorker;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
}

export class PythonSession {
  state: SessionState = "loading";
  progress: [stage: string, fraction: number] = ["Loading Python", 0];
  failure = "";
  runtime: RuntimeFacts | null = null;
  /** Where the kernels of searches run. */
  readonly trials = new TrialPool(
    () => new Worker(new URL("../trials/worker.ts", import.meta.url), { type: "module", name: "trials" }),
  );

  private worker: Worker | null = null;
  private interrupt: Uint8Array | null = null;
  private pending = new Map<number, Pending>();
  private lastId = 0;
  private listeners: { [K in keyof SessionEvents]: Set<SessionEvents[K]> } = {
    state: new Set(),
    progress: new Set(),
    output: new Set(),
    kept: new Set(),
    restarted: new Set(),
  };

  constructor(private readonly base: string) {}

  get isolated(): boolean {
    return typeof SharedArrayBuffer !== "undefined" && globalThis.crossOriginIsolated === true;
  }

  get busy(): boolean {
    return this.pending.size > 0;
  }

  on<K extends keyof SessionEvents>(event: K, listener: SessionEvents[K]): void {
    this.listeners[event].add(listener);
  }

  /** Start a worker. Calls may be made at once; they wait until Python is there. */
  launch(): void {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.worker = worker;
    this.interrupt = this.isolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (this.worker === worker) this.receive(data);
    };
    worker.onerror = (event) => {
      if (this.worker === worker) this.fail(event.message || "the worker's script did not load");
    };
    this.setState("loading");
    const trials = this.trials.connect();
    const message: ToWorker = { type: "start", base: this.base, interrupt: this.interrupt, trials };
    worker.postMessage(message, [trials]);
  }

  /**
   * Call a function of `mlcweb.playground`.
   *
   * Rejects with `Stopped` if Python is ended meanwhile, and with an `Error` if the call fails for a
   * reason that is no result (a broken runtime, unknown arguments).
   */
  call<K extends CallName>(name: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    if (this.state === "failed") return Promise.reject(new Error(this.failure));
    const id = ++this.lastId;
    const message: ToWorker = { type: "call", id, name, args };
    if (!this.busy && this.interrupt) this.interrupt[0] = 0;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { message, resolve, reject });
      if (this.state === "ready") this.send(message);
    });
  }

  /** Stop what runs: by an interrupt where that is possible, else by starting Python again. */
  async stop(): Promise<void> {
    if (this.state === "loading") this.rejectAll(new Stopped("Stopped before Python was there."));
    const calls = [...this.pending.keys()];
    const running = (): boolean => calls.some((id) => this.pending.has(id));
    if (this.interrupt && running()) {
      this.interrupt[0] = 2;
      const end = performance.now() + GRACE;
      while (running() && performance.now() < end) await new Promise((r) => setTimeout(r, 20));
    }
    if (running()) this.restart("Stopped. Python was restarted, so its variables are lost.");
  }

  /** End Python and start it anew; calls under way are rejected with `Stopped`. */
  restart(reason: string): void {
    this.worker?.terminate();
    this.launch();
    this.emit("restarted", reason);
    this.rejectAll(new Stopped(reason));
  }

  private receive(message: FromWorker): void {
    switch (message.type) {
      case "progress":
        this.progress = [message.stage, message.fraction];
        this.emit("progress", message.stage, message.fraction);
        break;
      case "ready":
        this.runtime = message.runtime;
        this.setState("ready");
        for (const { message: waiting } of this.pending.values()) this.send(waiting);
        break;
      case "kept":
        this.emit("kept", message.done);
        break;
      case "failed":
        if (this.state === "ready") this.restart(`Python failed and was restarted: ${message.message}`);
        else this.fail(message.message);
        break;
      case "output":
        this.emit("output", message.chunks);
        break;
      case "answer":
        this.take(message.id)?.resolve(message.value as never);
        break;
      case "refusal":
        this.take(message.id)?.reject(new Error(message.message));
        break;
    }
  }

  private fail(message: string): void {
    this.failure = message;
    this.setState("failed");
    this.rejectAll(new Error(message));
  }

  private take(id: number): Pending | undefined {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    return pending;
  }

  private rejectAll(error: Error): void {
    const all = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of all) reject(error);
  }

  private setState(state: SessionState): void {
    this.state = state;
    this.emit("state", state);
  }

  private emit<K extends keyof SessionEvents>(event: K, ...args: Parameters<SessionEvents[K]>): void {
    for (const listener of this.listeners[event]) (listener as (...a: typeof args) => void)(...args);
  }

  private send(message: ToWorker): void {
    this.worker?.postMessage(message);
  }
}
