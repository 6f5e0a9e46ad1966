/** What the reader has asked for: one thing runs at a time, the others wait for their turn. */

import { batch, computed, type Signal, signal } from "@preact/signals-core";

/** How something ended, for the status while nothing runs. */
export interface Outcome {
  text: string;
  failed: boolean;
}

/** Something that runs, or waits to. */
export interface Job {
  /** What the status says of it. */
  readonly what: Signal<string>;
  /** Whether Stop was pressed: a job of several steps goes no further then. */
  stopped: boolean;
}

interface Entry extends Job {
  stop: () => void;
  begin: () => void;
  shared: boolean;
}

/** What the Python that views use hears of jobs. */
interface Python {
  /** Interrupt what views look up. */
  makeWay(): void;
  /** Let views wait until `release`. */
  hold(): void;
  release(): void;
}

export class Activity {
  /** Jobs that have ended, for whoever has to tell one end from the next. */
  readonly ended = signal(0);
  readonly outcome = signal<Outcome | null>(null);
  /** Called when the last job has ended, before anybody sees that. */
  onRest?: () => void;
  /** The first of them runs. */
  private readonly jobs = signal<readonly Entry[]>([]);
  /** What a view does by itself; it gives way to jobs. */
  private readonly looks = signal<readonly Entry[]>([]);
  /** Whether a job runs. */
  readonly busy = computed(() => this.running !== null);

  constructor(private readonly python: Python) {}

  /** The job that runs; null while nothing does that the reader has asked for. */
  get running(): Job | null {
    return this.jobs.value[0] ?? null;
  }

  /** Jobs that wait for their turn. */
  get waiting(): number {
    return Math.max(0, this.jobs.value.length - 1);
  }

  /** What goes on, for the status; null while nothing does. */
  get shown(): Job | null {
    return this.running ?? this.looks.value.at(-1) ?? null;
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
    const job = entry(what, stop, shared);
    const turn = new Promise<void>((resolve) => {
      job.begin = resolve;
    });
    batch(() => {
      this.jobs.value = [...this.jobs.peek(), job];
      if (this.running === job) this.begin(job);
    });
    await turn;
    try {
      return await work(job);
    } finally {
      batch(() => {
        this.jobs.value = this.jobs.peek().slice(1);
        this.ended.value += 1;
        const next = this.jobs.peek()[0];
        if (next) this.begin(next);
        else this.onRest?.();
        if (!shared) this.python.release();
      });
    }
  }

  /** Show that a view looks something up, which takes long enough to be stopped. */
  async looking<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T> {
    const look = entry(what, stop, true);
    this.looks.value = [...this.looks.peek(), look];
    try {
      return await work();
    } finally {
      this.looks.value = this.looks.peek().filter((each) => each !== look);
    }
  }

  /** What the Stop button does: what waits has its turn then. */
  stop(): void {
    const shown = this.shown as Entry | null;
    if (!shown) return;
    shown.stopped = true;
    shown.stop();
  }

  private begin(job: Entry): void {
    this.outcome.value = null;
    if (job.shared) this.python.makeWay();
    else this.python.hold();
    job.begin();
  }
}

function entry(what: string, stop: () => void, shared: boolean): Entry {
  return { what: signal(what), stopped: false, stop, begin: () => undefined, shared };
}
