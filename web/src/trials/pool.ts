/**
 * The light workers that run a search's kernels, each with a time limit: a kernel that traps, hangs
 * or takes its worker with it costs its own trial. Lives in the page's own thread, which never
 * blocks; Python reaches it by a MessagePort.
 */

import {
  failure,
  type FromTrialPool,
  type FromTrialWorker,
  type ToTrialPool,
  type ToTrialWorker,
  type TrialFailure,
  type TrialJob,
  type TrialOutcome,
  type Workload,
} from "./protocol";

/** Milliseconds that a worker has to load its script. */
const START_LIMIT = 60_000;

const STOPPED = failure("Stopped", "The search was stopped");

/** What the pool needs of a `Worker`. */
export interface TrialWorker {
  postMessage(message: ToTrialWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromTrialWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
}

interface Waiting {
  job: TrialJob;
  resolve: (outcome: TrialOutcome) => void;
}

export class TrialPool {
  private minders: Minder[] = [];
  private queue: Waiting[] = [];
  private workload: Workload | null = null;
  private limit = 0;
  private port: MessagePort | null = null;

  constructor(private readonly spawn: () => TrialWorker) {}

  /** A port through which a `TrialLine` reaches this pool; one given out before is cut off. */
  connect(): MessagePort {
    this.stop();
    this.port?.close();
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }: MessageEvent<ToTrialPool>) => {
      if (data.type === "open") this.open(data.workload, data.workers, data.limitMs);
      else if (data.type === "close") this.stop();
      else
        void this.run(data.job).then((outcome) => {
          const answer: FromTrialPool = { id: data.id, outcome };
          port1.postMessage(answer);
        });
    };
    return port2;
  }

  /** Take kernels for this workload from now on. Workers start when there is something to do. */
  open(workload: Workload, workers: number, limitMs: number): void {
    this.workload = workload;
    this.limit = limitMs;
    for (const surplus of this.minders.splice(workers)) surplus.end();
    while (this.minders.length < workers) this.minders.push(new Minder(this.spawn));
    this.dispatch();
  }

  /** Run a kernel as soon as a worker is free. Every failure is an outcome. */
  run(job: TrialJob): Promise<TrialOutcome> {
    if (!this.workload) return Promise.resolve(STOPPED);
    return new Promise((resolve) => {
      this.queue.push({ job, resolve });
      this.dispatch();
    });
  }

  /** End all workers at once. Kernels that run or wait come to nothing, and so do later ones. */
  stop(): void {
    this.workload = null;
    for (const { resolve } of this.queue.splice(0)) resolve(STOPPED);
    for (const minder of this.minders.splice(0)) minder.end();
  }

  private dispatch(): void {
    for (const minder of this.minders) {
      if (minder.busy) continue;
      const next = this.queue.shift();
      if (!next) return;
      void minder.run(next.job, this.workload!, this.limit).then((outcome) => {
        next.resolve(outcome);
        this.dispatch();
      });
    }
  }
}

/** Minds one worker: gives it a kernel, and gives it up if no answer comes. */
class Minder {
  busy = false;
  private worker: TrialWorker | null = null;
  private known: Workload | null = null;
  private giveUp: (reason: TrialFailure) => void = () => undefined;

  constructor(private readonly spawn: () => TrialWorker) {}

  async run(job: TrialJob, workload: Workload, limit: number): Promise<TrialOutcome> {
    this.busy = true;
    try {
      const worker = this.worker ?? (await this.start());
      if (this.known !== workload) {
        worker.postMessage({ type: "workload", workload });
        this.known = workload;
      }
      const answer = this.answer(worker, limit);
      worker.postMessage({ type: "run", job });
      const message = await answer;
      return message.type === "outcome" ? message.outcome : failure("Error", "unexpected answer");
    } catch (reason) {
      this.drop();
      return reason as TrialFailure;
    } finally {
      this.busy = false;
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
    this.known = null;
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
