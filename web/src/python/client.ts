/** The page's side of the Python worker: calls with answers, Stop, and starting again. */

import { soon } from "../dom";
import { TrialPool } from "../trials/pool";
import { type Connect, type Connection, type Receiver, startWorker } from "./connection";
import type { CallName, Calls, FromWorker, OutputChunk, RuntimeFacts, ToWorker } from "./protocol";
import { StallWatch } from "./stall";

export type SessionState = "loading" | "ready" | "failed";

/** A call that was stopped by ending Python. */
export class Stopped extends Error {}

export interface SessionEvents {
  state: (state: SessionState) => void;
  progress: (stage: string, fraction: number) => void;
  /** A program waits for `fetching`, or no longer. */
  fetching: () => void;
  /** A step of the start makes no progress: a sentence for the reader; null once it does again. */
  stalled: (complaint: string | null) => void;
  output: (chunks: OutputChunk[]) => void;
  /** Python tells of something while it is busy. */
  event: (name: string, data: unknown) => void;
  /** Python's memory is kept for the next start, or could not be. */
  kept: (done: boolean) => void;
  /** Python has been ended and starts anew; `reason` is a sentence for the reader. */
  restarted: (reason: string) => void;
}

interface Pending {
  message: ToWorker & { type: "call" };
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  /** Who has asked: another frame, or null for this page. */
  guest: Guest | null;
}

/** A frame that uses this page's Python. */
export interface Guest {
  output(chunks: OutputChunk[], size: number): void;
}

export class PythonSession {
  state: SessionState = "loading";
  progress: [stage: string, fraction: number] = ["Loading Python", 0];
  failure = "";
  /** What is fetched for the program that runs. */
  fetching: string | null = null;
  runtime: RuntimeFacts | null = null;
  /** Where the kernels of searches run. */
  readonly trials = new TrialPool(
    () =>
      new Worker(new URL("../trials/worker.ts", import.meta.url), {
        type: "module",
        name: "trials",
      }),
  );

  private readonly watch = new StallWatch((complaint) => this.emit("stalled", complaint));
  private connection: Connection | null = null;
  /** Calls in the order in which they were made; Python has the first of them. */
  private readonly pending = new Map<number, Pending>();
  private lastId = 0;
  private readonly listeners: { [K in keyof SessionEvents]: Set<SessionEvents[K]> } = {
    state: new Set(),
    progress: new Set(),
    fetching: new Set(),
    stalled: new Set(),
    output: new Set(),
    event: new Set(),
    kept: new Set(),
    restarted: new Set(),
  };

  constructor(
    private readonly base: string,
    private connect: Connect = startWorker,
  ) {}

  /** Why Python may never be there; null while nothing speaks for that. */
  get complaint(): string | null {
    return this.state === "failed" ? `Python did not load: ${this.failure}` : this.watch.complaint;
  }

  get busy(): boolean {
    return this.pending.size > 0;
  }

  on<K extends keyof SessionEvents>(event: K, listener: SessionEvents[K]): void {
    this.listeners[event].add(listener);
  }

  /** Start Python. Calls may be made at once; they wait until it is there. */
  launch(): void {
    this.progress = ["Loading Python", 0];
    this.watch.progress("Starting the worker");
    this.setState("loading");
    this.setFetching(null);
    const receiver: Receiver = {
      receive: (message) => {
        if (this.connection === connection) this.receive(message);
      },
      fail: (reason) => {
        if (this.connection === connection) this.fail(reason);
      },
    };
    const connection = this.connect(receiver, this.base, this.trials.connect());
    this.connection = connection;
  }

  /**
   * Call a function of `mlcweb.playground`.
   *
   * Rejects with `Stopped` if Python is ended meanwhile, and with an `Error` if the call fails for a
   * reason that is no result (a broken runtime, unknown arguments).
   */
  call<K extends CallName>(name: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    return this.callFor(null, name, args);
  }

  /** `call` for another frame, which gets the output. */
  callFor<K extends CallName>(
    guest: Guest | null,
    name: K,
    args: unknown[],
  ): Promise<ReturnType<Calls[K]>> {
    if (this.state === "failed") return Promise.reject(new Error(this.failure));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { message: { type: "call", id, name, args }, resolve, reject, guest });
      if (this.state === "ready" && this.pending.size === 1) this.sendFirst();
    });
  }

  /** Stop what this page runs: by an interrupt where that is possible, else by starting Python again. */
  async stop(): Promise<void> {
    await this.stopFor(null);
  }

  /** `stop` for another frame, or for this page: what others run goes on. */
  async stopFor(guest: Guest | null): Promise<void> {
    const reason = "Stopped before it began.";
    const first = this.first;
    for (const [id, each] of this.pending) {
      if (each.guest !== guest || (each === first && this.state !== "loading")) continue;
      this.pending.delete(id);
      each.reject(new Stopped(reason));
    }
    if (!first || first.guest !== guest) return;
    const running = (): boolean => this.first === first;
    const { connection } = this;
    if (running() && connection?.interrupt()) {
      const end = performance.now() + connection.grace;
      while (running() && performance.now() < end) await new Promise((r) => setTimeout(r, 20));
    }
    if (running()) this.restart("Stopped. Python was restarted, so its variables are lost.");
  }

  /** End Python and start it anew; calls under way are rejected with `Stopped`. */
  restart(reason: string): void {
    this.connection?.end();
    this.launch();
    this.emit("restarted", reason);
    this.rejectAll(new Stopped(reason));
  }

  /** Go on with another Python, since the frame that had it is gone. */
  reconnect(connect: Connect): void {
    this.connect = connect;
    this.connection = null;
    this.restart("The part of the page that ran Python is gone. It was started again.");
  }

  private receive(message: FromWorker): void {
    switch (message.type) {
      case "progress":
        this.watch.progress(message.stage);
        // What comes behind is watched, too, but only who runs a program waits to see it.
        if (this.state !== "loading") {
          this.setFetching(message.stage);
          break;
        }
        this.progress = [message.stage, message.fraction];
        this.emit("progress", message.stage, message.fraction);
        break;
      case "loaded":
        this.watch.stop();
        this.setFetching(null);
        break;
      case "ready":
        this.watch.stop();
        this.runtime = message.runtime;
        this.setState("ready");
        this.sendFirst();
        break;
      case "kept":
        this.emit("kept", message.done);
        break;
      case "failed":
        if (this.state === "ready")
          this.restart(`Python failed and was restarted: ${message.message}`);
        else this.fail(message.message);
        break;
      case "output":
        this.passOn(message.chunks, message.size);
        break;
      case "event":
        if (!this.first?.guest) this.emit("event", message.name, message.data);
        break;
      case "answer":
        this.take(message.id)?.resolve(message.value as never);
        break;
      case "restarted":
        this.emit("restarted", message.reason);
        this.rejectAll(new Stopped(message.reason));
        break;
      case "refusal":
        this.take(message.id)?.reject(
          message.stopped ? new Stopped(message.message) : new Error(message.message),
        );
        break;
    }
  }

  /** Output of that size, of this Python, was seen by the guest that it went to. */
  seen(size: number): void {
    this.connection?.seen(size);
  }

  private passOn(chunks: OutputChunk[], size: number): void {
    const { connection } = this;
    const guest = this.first?.guest;
    if (guest) guest.output(chunks, size);
    else {
      this.emit("output", chunks);
      soon(() => connection?.seen(size));
    }
  }

  private fail(message: string): void {
    this.failure = message;
    this.watch.stop();
    this.setState("failed");
    this.rejectAll(new Error(message));
  }

  private take(id: number): Pending | undefined {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    this.sendFirst();
    return pending;
  }

  /** The call that Python has, or gets next. */
  private get first(): Pending | undefined {
    return this.pending.values().next().value;
  }

  private sendFirst(): void {
    const { first } = this;
    if (!first || this.state !== "ready") return;
    this.connection?.allow();
    this.connection?.post(first.message);
  }

  private rejectAll(error: Error): void {
    const all = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of all) reject(error);
  }

  private setFetching(what: string | null): void {
    this.fetching = what;
    this.emit("fetching");
  }

  private setState(state: SessionState): void {
    this.state = state;
    this.emit("state", state);
  }

  private emit<K extends keyof SessionEvents>(
    event: K,
    ...args: Parameters<SessionEvents[K]>
  ): void {
    for (const listener of this.listeners[event])
      (listener as (...a: typeof args) => void)(...args);
  }
}
