/** The page's side of the Python worker: calls with answers, Stop, and starting again. */

import { soon } from "../dom";
import { ThreadPool } from "../threads/pool";
import threadScript from "../threads/worker.ts?worker&url";
import { TrialPool } from "../trials/pool";
import trialScript from "../trials/worker.ts?worker&url";
import { pagesOf } from "./bounded";
import { confinedWorker } from "./confined";
import { type Connect, type Connection, type Receiver, startWorker } from "./connection";
import { isFromWorker } from "./incoming";
import type { CallName, FromWorker, OutputChunk, RuntimeFacts, ToWorker } from "./messages";
import { CallQueue } from "./queue";
import * as snapshot from "./snapshot";
import { StallWatch } from "./stall";
import type { Calls } from "./wire";

/** Milliseconds for a page of HTML, which is a frame, to load. */
const LOADING = 100;
/** Milliseconds that stopped trials have to come to their end before Python is stopped. */
const TRIAL_PATIENCE = 4000;

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
  /** The snapshot of Python's memory is stored for the next start, or could not be. */
  stored: (done: boolean) => void;
  /** The worker has sent what is no message of ours. It comes once for each Python. */
  ignored: () => void;
  /** Python has been ended and starts anew; `reason` is a sentence for the reader. */
  restarted: (reason: string) => void;
}

interface Pending {
  message: ToWorker & { type: "call" };
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  /** Who has asked: another frame, or null for this page. */
  guest: Guest | null;
  look: boolean;
  /** It was interrupted for what the reader asks, and is to be made again. */
  interrupted: boolean;
}

/** How a call is made. */
interface Manner {
  guest?: Guest | null;
  look?: boolean;
  signal?: AbortSignal | null;
}

/** A frame that uses this page's Python. */
export interface Guest {
  output(chunks: OutputChunk[], size: number): void;
}

const NO_LONGER = "It is no longer asked for.";

export class PythonSession {
  state: SessionState = "loading";
  progress: [stage: string, fraction: number] = ["Loading Python", 0];
  failure = "";
  /** What is fetched for the program that runs. */
  fetching: string | null = null;
  runtime: RuntimeFacts | null = null;
  /** Where the kernels of searches run. */
  readonly trials = new TrialPool(
    () => confinedWorker(trialScript, "trials"),
    () => this.ignore(),
  );
  /** What runs parallel loops. */
  readonly threads = new ThreadPool(() => confinedWorker(threadScript, "threads"));

  private readonly watch = new StallWatch((complaint) => this.emit("stalled", complaint));
  private connection: Connection | null = null;
  private readonly calls = new CallQueue<Pending>();
  /** How many jobs want Python for themselves. */
  private held = 0;
  /** Whether all of Python is there: an import that is interrupted would stay broken. */
  private whole = false;
  private lastId = 0;
  private ignored = false;
  /** To be stored once all of Python is there. */
  private snapshot: (FromWorker & { type: "snapshot" }) | null = null;
  /** Who waits until Python's thread is free. */
  private pings: (() => void)[] = [];
  private readonly listeners = new Map<keyof SessionEvents, ((...args: never[]) => void)[]>();

  constructor(
    private readonly base: string,
    private connect: Connect = startWorker,
  ) {}

  /** Why Python may never be there; null while nothing speaks for that. */
  get complaint(): string | null {
    return this.state === "failed" ? `Python did not load: ${this.failure}` : this.watch.complaint;
  }

  get busy(): boolean {
    return !this.calls.empty;
  }

  /** Whether all of Python is there and this page has asked nothing of it. */
  get idle(): boolean {
    return this.state === "ready" && this.whole && !this.busy && this.connection?.own === true;
  }

  on<K extends keyof SessionEvents>(event: K, listener: SessionEvents[K]): void {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  /** Start Python. Calls may be made at once; they wait until it is there. */
  launch(): void {
    this.progress = ["Loading Python", 0];
    this.watch.progress("Starting the worker");
    this.whole = false;
    this.ignored = false;
    this.snapshot = null;
    this.setState("loading");
    this.setFetching(null);
    const receiver: Receiver = {
      receive: (message) => {
        if (this.connection !== connection) return;
        if (isFromWorker(message)) this.receive(message);
        else this.ignore();
      },
      fail: (reason) => {
        if (this.connection === connection) this.fail(reason);
      },
    };
    void this.threads.end();
    const connection = this.connect(receiver, this.base, this.trials.connect());
    this.connection = connection;
  }

  /**
   * Call a function of `mlcweb.playground`, for something that the reader asks.
   *
   * Rejects with `Stopped` if Python is ended meanwhile, and with an `Error` if the call fails for a
   * reason that is no result (a broken runtime, unknown arguments).
   */
  call<K extends CallName>(name: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    return this.make(name, args);
  }

  /**
   * `call` for a view that looks something up: it waits for what the reader asks, which may interrupt
   * it; then it is made again. It must leave Python as it was. An aborted `signal` ends it with
   * `Stopped`.
   */
  look<K extends CallName>(
    signal: AbortSignal | null,
    name: K,
    ...args: Parameters<Calls[K]>
  ): Promise<ReturnType<Calls[K]>> {
    return this.make(name, args, { look: true, signal });
  }

  /** `call`, or with `look` the other, also for another frame, which gets the output. */
  make<K extends CallName>(
    name: K,
    args: unknown[],
    { guest = null, look = false, signal = null }: Manner = {},
  ): Promise<ReturnType<Calls[K]>> {
    if (this.state === "failed") return Promise.reject(new Error(this.failure));
    if (signal?.aborted) return Promise.reject(new Stopped(NO_LONGER));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const message = { type: "call", id, name, args, look } as const;
      const call = { message, resolve, reject, guest, look, interrupted: false };
      signal?.addEventListener("abort", () => this.abandon(call), { once: true });
      this.calls.add(call);
      this.sendNext();
    });
  }

  /**
   * The reader asks for something: interrupt what a view looks up, where that is possible.
   *
   * For another frame: its own look-ups go back to it, to be asked again in its time.
   */
  makeWay(guest: Guest | null = null): void {
    for (const each of guest ? this.calls.all : []) {
      if (each.look && each.guest === guest && this.calls.remove(each))
        each.reject(new Stopped(NO_LONGER));
    }
    const { sent } = this.calls;
    if (this.interruptLook() && sent) sent.interrupted = guest === null || sent.guest !== guest;
  }

  /** From now on views wait, also between two calls. */
  hold(): void {
    this.held += 1;
    this.makeWay();
  }

  /** The end of what `hold` began. */
  release(): void {
    this.held -= 1;
    this.sendNext();
  }

  /** Stop what this page runs: by an interrupt where that is possible, else by starting Python again. */
  async stop(): Promise<void> {
    await this.stopFor(null);
  }

  /** `stop` for another frame, or for this page: what others run goes on, and so do looks of views
   * while there is something that the reader asked. */
  async stopFor(guest: Guest | null): Promise<void> {
    const own = this.calls.all.filter((each) => each.guest === guest);
    const look = own.every((each) => each.look);
    const { sent } = this.calls;
    for (const each of own) {
      if (each.look === look && this.calls.remove(each))
        each.reject(new Stopped("Stopped before it began."));
    }
    if (!sent || sent.guest !== guest || sent.look !== look) return;
    sent.interrupted = false;
    await this.interruptOrEnd(() => this.calls.sent === sent);
  }

  /** Stop what workers measure, and Python, too, if `isOver` does not hold soon after. */
  stopTrials(isOver: () => boolean): void {
    this.trials.stop();
    setTimeout(() => {
      if (!isOver()) void this.stop();
    }, TRIAL_PATIENCE);
  }

  /** Resolves once Python's thread is free, or Python was ended. */
  ping(): Promise<void> {
    return new Promise((resolve) => {
      this.pings.push(resolve);
      this.connection?.post({ type: "ping" });
    });
  }

  /** Stop what blocks Python although nothing was asked. */
  async stopLeftover(): Promise<void> {
    let blocked = true;
    void this.ping().then(() => {
      blocked = false;
    });
    await this.interruptOrEnd(() => blocked);
  }

  private async interruptOrEnd(running: () => boolean): Promise<void> {
    const { connection } = this;
    if (this.whole && connection?.interrupt()) {
      let end = performance.now() + connection.grace;
      while (running() && performance.now() < end) {
        // Python waits for threads until they have ended, and only then goes on.
        if (this.threads.ending) end = performance.now() + connection.grace;
        await new Promise((r) => setTimeout(r, 20));
      }
    }
    if (running()) this.restart("Stopped. Python was restarted, so its variables are lost.");
  }

  private answerPings(): void {
    for (const resolve of this.pings.splice(0)) resolve();
  }

  /** End Python and start it anew; calls under way are rejected with `Stopped`. */
  restart(reason: string): void {
    this.connection?.end();
    this.answerPings();
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
      case "snapshot":
        // Later it could be one that a program has made.
        if (this.state === "loading") this.snapshot = message;
        else this.ignore();
        break;
      case "loaded":
        this.whole = true;
        this.watch.stop();
        this.setFetching(null);
        void this.storeSnapshot();
        break;
      case "ready":
        this.watch.stop();
        this.runtime = message.runtime;
        this.setState("ready");
        this.sendNext();
        break;
      case "startThreads":
        this.threads.start(message);
        break;
      case "endThreads":
        void this.threads.end();
        break;
      case "pong":
        this.answerPings();
        break;
      case "failed":
        this.fail(message.message);
        break;
      case "output":
        this.passOn(message.chunks, message.size);
        break;
      case "event":
        if (!this.calls.sent?.guest) this.tell(message.name, message.data);
        break;
      case "answer":
        this.take(message.id)?.resolve(message.value as never);
        break;
      case "restarted":
        this.emit("restarted", message.reason);
        this.rejectAll(new Stopped(message.reason));
        break;
      case "refusal":
        this.refuse(message);
        break;
    }
  }

  private async storeSnapshot(): Promise<void> {
    const latest = this.snapshot;
    this.snapshot = null;
    if (latest) this.emit("stored", await snapshot.store(latest.key, latest.memory));
  }

  /** Pass on what Python tells; it may be any data, if a program tells it. */
  private tell(name: string, data: unknown): void {
    try {
      this.emit("event", name, data);
    } catch {
      this.ignore();
    }
  }

  private ignore(): void {
    if (!this.ignored) this.emit("ignored");
    this.ignored = true;
  }

  /** Output of that size, of this Python, was seen by the guest that it went to. */
  seen(size: number): void {
    this.connection?.seen(size);
  }

  private passOn(chunks: OutputChunk[], size: number): void {
    const { connection } = this;
    const guest = this.calls.sent?.guest;
    if (guest) guest.output(chunks, size);
    else {
      this.emit("output", chunks);
      const loading = LOADING * pagesOf(chunks);
      soon(() => setTimeout(() => connection?.seen(size), loading));
    }
  }

  private refuse({ id, message, stopped }: FromWorker & { type: "refusal" }): void {
    const { sent } = this.calls;
    if (sent?.message.id === id && sent.interrupted) {
      sent.interrupted = false;
      this.calls.done(true);
      this.sendNext();
    } else this.take(id)?.reject(stopped ? new Stopped(message) : new Error(message));
  }

  /** Python is at its end: one that was there starts anew. */
  private fail(message: string): void {
    if (this.state === "ready") {
      this.restart(`Python failed and was restarted: ${message}`);
      return;
    }
    this.failure = message;
    this.watch.stop();
    this.setState("failed");
    this.rejectAll(new Error(message));
  }

  /** Who waits for the answer that has come; Python gets the next call. */
  private take(id: number): Pending | null {
    const { sent } = this.calls;
    if (sent?.message.id !== id) return null;
    this.calls.done();
    this.sendNext();
    return sent;
  }

  private sendNext(): void {
    if (this.state !== "ready") return;
    const next = this.calls.next(this.held === 0);
    if (!next) return;
    if (this.held) this.connection?.makeWay(false);
    this.connection?.allow();
    this.connection?.post(next.message);
  }

  /** Nobody waits for a look any more. */
  private abandon(call: Pending): void {
    if (!this.calls.remove(call) && this.calls.sent === call) this.interruptLook();
    call.interrupted = false;
    call.reject(new Stopped(NO_LONGER));
  }

  private interruptLook(): boolean {
    return this.whole && this.connection?.makeWay(this.calls.sent?.look === true) === true;
  }

  private rejectAll(error: Error): void {
    for (const { reject } of this.calls.clear()) reject(error);
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
    for (const listener of this.listeners.get(event) ?? [])
      (listener as (...a: typeof args) => void)(...args);
  }
}
