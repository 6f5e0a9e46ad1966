/** What runs in the page: one thing at a time, and how it is stopped. */

/** How something ended, for the status while nothing runs. */
export interface Outcome {
  text: string;
  failed: boolean;
}

export class Activity {
  /** What runs now, and how to stop it. */
  running: { what: string; stop: () => void } | null = null;
  /** Activities that have ended, for whoever has to tell one end from the next. */
  ended = 0;
  outcome: Outcome | null = null;
  private readonly listeners = new Set<() => void>();

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** Mark the page as running `what` while `work` goes on; `stop` is what the Stop button does. */
  async during<T>(what: string, stop: () => void, work: () => Promise<T>): Promise<T> {
    if (this.running) throw new Error("something runs already");
    this.running = { what, stop };
    this.outcome = null;
    this.tell();
    try {
      return await work();
    } finally {
      this.running = null;
      this.ended += 1;
      this.tell();
    }
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
