/**
 * The light workers that run a search's kernels, each with a time limit: a kernel that traps, hangs
 * or takes its worker with it costs its own trial. Lives in the page's own thread, which never
 * blocks; Python reaches it by a MessagePort.
 */

import { isForTrials } from "../python/incoming";
import type { FromTrialPool, FromTrialWorker, ToTrialWorker } from "../python/messages";
import type { TrialFailure, TrialJob, TrialOutcome, TrialWorkload } from "../python/wire";
import { failure, writeAnswer } from "./shared_answer";

/** Milliseconds that a worker has to load its script. */
const START_LIMIT = 60_000;

/** Workers at one time; programs may ask for any number. */
const MAX_WORKERS = 64;

const STOPPED = failure("Stopped", "The search was stopped");

/** What the pool needs of a `Worker`. */
export interface TrialWorker {
  postMessage(message: ToTrialWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromTrialWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
}

/** What the kernels of one search run on, and how long one may take, in milliseconds. */
interface Account {
  workload: TrialWorkload;
  workers: number;
  limit: number;
}

interface Waiting {
  owner: number;
  job: TrialJob;
  resolve: (outcome: TrialOutcome) => void;
}

export class TrialPool {
  private supervisors: Supervisor[] = [];
  private queue: Waiting[] = [];
  private readonly accounts = new Map<number, Account>();
  private port: MessagePort | null = null;

  /** `ignored` is called for what is no message of a `TrialLine`. */
  constructor(
    private readonly spawn: () => TrialWorker,
    private readonly ignored: () => void = () => undefined,
  ) {}

  /** A port through which a `TrialLine` reaches this pool; one given out before is cut off. */
  connect(): MessagePort {
    this.stop();
    this.port?.close();
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (!isForTrials(data)) this.ignored();
      else if (data.type === "open")
        this.open(data.owner, data.workload, data.workers, data.limitMs);
      else if (data.type === "close") this.close(data.owner);
      else
        void this.run(data.owner, data.job).then((outcome) => {
          if (data.reply) return writeAnswer(data.reply, outcome);
          const answer: FromTrialPool = { id: data.id, outcome };
          port1.postMessage(answer);
        });
    };
    return port2;
  }

  /** Take an owner's kernels for this workload from now on. Workers start when there is something to do. */
  open(owner: number, workload: TrialWorkload, workers: number, limitMs: number): void {
    this.accounts.set(owner, { workload, workers: Math.min(workers, MAX_WORKERS), limit: limitMs });
    this.resize();
    this.dispatch();
  }

  /** Run a kernel as soon as a worker is free. Every failure is an outcome. */
  run(owner: number, job: TrialJob): Promise<TrialOutcome> {
    if (!this.accounts.has(owner)) return Promise.resolve(STOPPED);
    return new Promise((resolve) => {
      this.queue.push({ owner, job, resolve });
      this.dispatch();
    });
  }

  /** End what an owner's kernels do or wait for; those of others go on. */
  close(owner: number): void {
    this.accounts.delete(owner);
    const cut = this.queue.filter((waiting) => waiting.owner === owner);
    this.queue = this.queue.filter((waiting) => waiting.owner !== owner);
    for (const { resolve } of cut) resolve(STOPPED);
    this.end((supervisor) => supervisor.owner === owner);
    this.resize();
    this.dispatch();
  }

  /** End all workers at once. Kernels that run or wait come to nothing, and so do later ones. */
  stop(): void {
    for (const owner of [...this.accounts.keys()]) this.close(owner);
  }

  /** As many workers as the owner who wants most of them; what others run is left alone. */
  private resize(): void {
    const count = Math.max(0, ...[...this.accounts.values()].map(({ workers }) => workers));
    let surplus = this.supervisors.length - count;
    this.end((supervisor) => supervisor.owner === null && surplus-- > 0);
    while (this.supervisors.length < count) this.supervisors.push(new Supervisor(this.spawn));
  }

  private end(isMeant: (supervisor: Supervisor) => boolean): void {
    this.supervisors = this.supervisors.filter((supervisor) => {
      const meant = isMeant(supervisor);
      if (meant) supervisor.end();
      return !meant;
    });
  }

  private dispatch(): void {
    for (const supervisor of this.supervisors) {
      if (supervisor.owner !== null) continue;
      const next = this.queue.shift();
      if (!next) return;
      const { workload, limit } = this.accounts.get(next.owner)!;
      void supervisor.run(next.owner, next.job, workload, limit).then((outcome) => {
        next.resolve(outcome);
        this.dispatch();
      });
    }
  }
}

/** Supervises one worker: gives it a kernel, and gives it up if no answer comes. */
class Supervisor {
  /** Whose kernel runs. */
  owner: number | null = null;
  private worker: TrialWorker | null = null;
  private workload: TrialWorkload | null = null;
  private giveUp: (reason: TrialFailure) => void = () => undefined;

  constructor(private readonly spawn: () => TrialWorker) {}

  async run(
    owner: number,
    job: TrialJob,
    workload: TrialWorkload,
    limit: number,
  ): Promise<TrialOutcome> {
    this.owner = owner;
    try {
      const worker = this.worker ?? (await this.start());
      if (this.workload !== workload) {
        worker.postMessage({ type: "workload", workload });
        this.workload = workload;
      }
      const answer = this.answer(worker, limit);
      worker.postMessage({ type: "run", job });
      const message = await answer;
      return message.type === "outcome" ? message.outcome : failure("Error", "unexpected answer");
    } catch (reason) {
      this.drop();
      return reason as TrialFailure;
    } finally {
      this.owner = null;
    }
  }

  /** End the worker; what it runs comes to nothing. */
  end(): void {
    this.drop();
    this.giveUp(STOPPED);
  }

  private async start(): Promise<TrialWorker> {
    const worker = this.spawn();
    this.worker = worker;
    this.workload = null;
    await this.answer(worker, START_LIMIT);
    return worker;
  }

  /** The worker's next message. Rejects with a `TrialFailure` if it dies or takes too long. */
  private answer(worker: TrialWorker, limit: number): Promise<FromTrialWorker> {
    return new Promise<FromTrialWorker>((resolve, reject) => {
      const died = (why: string): void => reject(failure("WorkerDied", why));
      const timer = setTimeout(
        () => reject(failure("TimeoutError", `no result within ${limit / 1000} s`)),
        limit,
      );
      this.giveUp = (reason) => {
        clearTimeout(timer);
        reject(reason);
      };
      worker.onmessage = ({ data }) => {
        clearTimeout(timer);
        resolve(data);
      };
      worker.onerror = (event) => {
        clearTimeout(timer);
        died(`the worker failed: ${event.message || "its script did not load"}`);
      };
      worker.onmessageerror = () => {
        clearTimeout(timer);
        died("the worker's answer could not be read");
      };
    });
  }

  private drop(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}
