/** What the reader has asked for: one thing runs at a time, the others wait for their turn. */

import { signal } from "@preact/signals-core";

/** How something ended, for the status while nothing runs. */
export interface Outcome {
  text: string;
  failed: boolean;
}

/** Something that runs, or waits to. */
export interface Job {
  /** What the status says of it. */
  what: string;
  /** Whether Stop was pressed: a job of several steps goes no further then. */
  stopped: boolean;
}

interface Entry extends Job {
  stop: () => void;
  begin: () => void;
  shared: boolean;
}

/** What is told of jobs to the Python that views use, too. */
interface Python {
  /** Interrupt what views look up. */
  makeWay(): void;
  /** Let views wait until `release`. */
  hold(): void;
  release(): void;
}

export class Activity {
  /** Jobs that have ended, for whoever has to tell one end from the next. */
  ended = 0;
  outcome: Outcome | null = null;
  /** Whether a job runs. */
  readonly busy = signal(false);
  /** The first of them runs. */
  private readonly jobs: Entry[] = [];
  /** What a view does by itself; it gives way to jobs. */
  private readonly looks: Entry[] = [];
  private readonly listeners = new Set<() => void>();
  private readonly atRest = new Set<() => void>();

  constructor(private readonly python: Python) {}

  /** The job that runs; null while nothing does that the reader has asked for. */
  get running(): Job | null {
    return this.jobs[0] ?? null;
  }

  /** Jobs that wait for their turn. */
  get waiting(): number {
    return Math.max(0, this.jobs.length - 1);
  }

  /** What goes on, for the status; null while nothing does. */
  get shown(): Job | null {
    return this.running ?? this.looks.at(-1) ?? null;
  }

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** Call `listener` when the last job has ended, before those that listen to changes. */
  onRest(listener: () => void): void {
    this.atRest.add(listener);
  }

  /**
   * Do `work` when all that was asked before is done; `stop` is what the Stop button does. Views may
   * look things up between two calls of a job that is `shared`.
   */
  async during<T>(
    what: string,
    stop: () => void,
    work: (job: Job) => Promise<T>,
    shared = false,
  ): Promise<T> {
    const job: Entry = { what, stopped: false, stop, begin: () => undefined, shared };
    const turn = new Promise<void>((resolve) => {
      job.begin = resolve;
    });
    this.jobs.push(job);
    if (this.running === job) this.begin(job);
    this.tell();
    await turn;
    try {
      return await work(job);
    } finally {
      this.jobs.shift();
      this.ended += 1;
      const next = this.jobs[0];
      if (next) this.begin(next);
      else for (const listener of this.atRest) listener();
      if (!shared) this.python.release();
      this.tell();
    }
  }

  /** Show that a view looks something up, which takes long enough to be stopped. */
  async looking<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T> {
    const look = { what, stopped: false, stop, begin: () => undefined, shared: true };
    this.looks.push(look);
    this.tell();
    try {
      return await work();
    } finally {
      this.looks.splice(this.looks.indexOf(look), 1);
      this.tell();
    }
  }

  /** What the Stop button does: what waits has its turn then. */
  stop(): void {
    const shown = this.shown as Entry | null;
    if (!shown) return;
    shown.stopped = true;
    shown.stop();
  }

  /** Say something else of a job that runs. */
  rename(job: Job, what: string): void {
    job.what = what;
    this.tell();
  }

  private begin(job: Entry): void {
    this.outcome = null;
    if (job.shared) this.python.makeWay();
    else this.python.hold();
    job.begin();
  }

  private tell(): void {
    this.busy.value = this.running !== null;
    for (const listener of this.listeners) listener();
  }
}
