/** How much output is on its way to the page, counted in memory that both threads share. */

/** Milliseconds after which a page that does nothing, a suspended tab say, is waited for no longer. */
const PATIENCE = 1000;
/** Milliseconds between two looks whether the program is to stop. */
const LOOK = 50;

export class Backlog {
  private readonly count: Int32Array;
  /** The count at which the page was waited for in vain. */
  private unheard = Number.NaN;

  constructor(memory: SharedArrayBuffer) {
    this.count = new Int32Array(memory);
  }

  /** These characters were sent. */
  add(characters: number): void {
    Atomics.add(this.count, 0, characters);
  }

  /** The page has seen these characters. */
  remove(characters: number): void {
    Atomics.sub(this.count, 0, characters);
    Atomics.notify(this.count, 0);
  }

  /** Whether at most `limit` characters are on their way; blocks until so, or until `isEnough`. */
  wait(limit: number, isEnough: () => boolean): boolean {
    const end = performance.now() + PATIENCE;
    for (;;) {
      const now = Atomics.load(this.count, 0);
      if (now <= limit) return true;
      if (now === this.unheard || isEnough()) return false;
      if (performance.now() > end) {
        this.unheard = now;
        return false;
      }
      Atomics.wait(this.count, 0, now, LOOK);
    }
  }
}
