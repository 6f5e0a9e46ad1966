/** Bounded, rate-limited output on its way from Python to the page. */

import type { OutputChunk, Picture, Stream } from "./protocol";

/** Characters kept between two posts; what comes before is dropped and counted in lines. */
const CAPACITY = 64_000;
/** Posts that may be made at once after a pause, so that single prints appear without delay. */
const BURST = 40;
const POSTS_PER_SECOND = 60;

/**
 * Collects what Python writes and posts it at most about 60 times a second.
 *
 * Python may block the worker, so no timer would fire: each write decides for itself whether to
 * post. `flush` posts the rest when the program has ended.
 */
export class OutputBatcher {
  private chunks: OutputChunk[] = [];
  private size = 0;
  private credit = BURST;
  private last: number;

  constructor(
    private readonly post: (chunks: OutputChunk[]) => void,
    private readonly now: () => number,
  ) {
    this.last = now();
  }

  write(stream: Stream, text: string): void {
    if (text) this.add(stream, text);
    const time = this.now();
    const earned = ((time - this.last) / 1000) * POSTS_PER_SECOND;
    this.credit = Math.min(BURST, this.credit + earned);
    this.last = time;
    if (this.credit >= 1) {
      this.credit -= 1;
      this.flush();
    }
  }

  /** Post a picture at its place among the texts. */
  picture(picture: Picture): void {
    this.flush();
    this.post([{ stream: "stdout", text: "", dropped: 0, picture }]);
  }

  flush(): void {
    if (!this.chunks.length) return;
    const chunks = this.chunks;
    this.chunks = [];
    this.size = 0;
    this.post(chunks);
  }

  private add(stream: Stream, text: string): void {
    const tail = this.chunks.at(-1);
    if (tail?.stream === stream) tail.text += text;
    else this.chunks.push({ stream, text, dropped: 0 });
    this.size += text.length;
    if (this.size > 2 * CAPACITY) this.trim();
  }

  /** Drop the oldest output beyond the capacity, at a line's start where there is one. */
  private trim(): void {
    let excess = this.size - CAPACITY;
    let dropped = 0;
    while (this.chunks.length > 1 && excess >= this.chunks[0]!.text.length) {
      const chunk = this.chunks.shift()!;
      excess -= chunk.text.length;
      dropped += chunk.dropped + countLines(chunk.text);
    }
    const first = this.chunks[0]!;
    const newline = first.text.indexOf("\n", Math.max(0, excess - 1));
    const cut = newline >= 0 && newline < excess + 2000 ? newline + 1 : excess;
    first.dropped += dropped + countLines(first.text.slice(0, cut));
    first.text = first.text.slice(cut);
    this.size = this.chunks.reduce((sum, chunk) => sum + chunk.text.length, 0);
  }
}

export function countLines(text: string): number {
  let count = 0;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) count += 1;
  return count;
}
