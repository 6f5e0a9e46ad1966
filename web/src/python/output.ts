/** Bounded, rate-limited output on its way from Python to the page. */

import { BoundedOutput, pagesOf, sizeOfAll } from "./bounded";
import type { OutputChunk, Stream } from "./messages";
import type { Picture } from "./wire";

/** Characters kept between two posts. */
const CAPACITY = 32_000;
/** Posts that may be made at once after a pause, so that single prints appear without delay. */
const BURST = 40;
const POSTS_PER_SECOND = 60;
/** Posts a second of a worker that cannot hear whether the page keeps up. */
const POSTS_PER_SECOND_UNHEARD = 15;
/** Posts that a page of HTML counts as: its frame takes the browser longer. */
const POSTS_OF_PAGE = 3;

/** Whether the page has seen enough of what was posted; where `blocking`, waits for that a while. */
export type WaitForPage = (blocking: boolean) => boolean;

/**
 * Collects what Python writes and posts it at most about 60 times a second.
 *
 * Python may block the worker, so no timer would fire: each write decides for itself whether to
 * post. `flush` posts the rest when the program has ended. A program that writes more than the page
 * shows waits for it. Without `wait`, or where that is in vain, the oldest is dropped and counted.
 */
export class OutputBatcher {
  /** Set once it is known whether the worker hears how far the page is. */
  wait: WaitForPage | null = null;
  private readonly waiting = new BoundedOutput(CAPACITY);
  private credit = BURST;
  private last: number;

  constructor(
    private readonly post: (chunks: OutputChunk[], size: number) => void,
    private readonly now: () => number,
  ) {
    this.last = now();
  }

  write(stream: Stream, text: string): void {
    for (let start = 0; start < text.length; start += CAPACITY) {
      this.waiting.add({ stream, text: text.slice(start, start + CAPACITY) });
      this.limitRate();
    }
  }

  /** A picture, or a page of HTML, at its place among the texts. */
  show(shown: { picture: Picture } | { html: string }): void {
    this.waiting.add({ stream: "stdout", text: "", ...shown });
    this.limitRate();
  }

  flush(): void {
    const size = sizeOfAll(this.waiting.chunks);
    const chunks = this.waiting.take();
    if (chunks.length) this.post(chunks, size);
  }

  private limitRate(): void {
    const time = this.now();
    const rate = this.wait ? POSTS_PER_SECOND : POSTS_PER_SECOND_UNHEARD;
    this.credit = Math.min(BURST, this.credit + ((time - this.last) / 1000) * rate);
    this.last = time;
    const full = this.waiting.size >= CAPACITY;
    if (this.credit < 1 && !(full && this.wait)) return;
    if (this.wait && !this.wait(full)) return;
    const cost = 1 + POSTS_OF_PAGE * pagesOf(this.waiting.chunks);
    this.credit = Math.max(-BURST, this.credit - cost);
    this.flush();
  }
}
