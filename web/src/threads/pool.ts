/**
 * The threads that run parallel loops. They are started and ended in the page's own thread, which
 * never blocks; tasks come to them through memory that they share with Python's worker.
 */

import type { StartThreadsMessage, ThreadMessage } from "../python/messages";
import { MAX_THREADS, Slots, State } from "./slots";

/** Milliseconds after which a thread that was ended is waited for no longer. */
const PATIENCE = 5000;

/** What the pool needs of a `Worker`. */
export interface ThreadWorker {
  postMessage(message: ThreadMessage): void;
  terminate(): void;
  onerror: ((event: ErrorEvent) => void) | null;
}

interface Thread {
  worker: ThreadWorker;
  lock: string;
}

export class ThreadPool {
  /** Whether threads are being ended. */
  ending = false;
  private threads: Thread[] = [];
  private slots: Slots | null = null;

  constructor(
    private readonly spawn: () => ThreadWorker,
    private readonly whenFree: (lock: string) => Promise<unknown> = (lock) =>
      navigator.locks.request(lock, () => undefined),
  ) {}

  /** Start the threads from the number `first` to before `count`. */
  start({ memory, slots: shared, first, count }: StartThreadsMessage): void {
    const slots = new Slots(shared);
    this.slots = slots;
    for (let number = first; number < Math.min(count, MAX_THREADS); number += 1) {
      if (this.threads.length >= MAX_THREADS) return;
      const worker = this.spawn();
      const lock = `mlcweb-thread-${crypto.randomUUID()}`;
      worker.onerror = (event) => {
        const slot = slots.at(number);
        const message = `a thread failed: ${event.message || "its script did not load"}`;
        if (slot.state === State.RUNNING)
          slot.fail({ name: "Error", message, stack: "", check: 0, index: 0 });
      };
      worker.postMessage({ memory, slots: shared, number, lock });
      this.threads.push({ worker, lock });
    }
  }

  /** End all threads, and tell Python's worker when none runs any more. */
  async end(): Promise<void> {
    const { threads, slots } = this;
    this.threads = [];
    this.slots = null;
    for (const { worker } of threads) worker.terminate();
    if (!threads.length) return slots?.end();
    this.ending = true;
    const ended = Promise.all(threads.map(({ lock }) => this.whenFree(lock)));
    void ended.then(() => slots?.end());
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
    this.ending = false;
  }
}
