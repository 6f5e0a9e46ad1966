/** Memory for an answer: the length of its text (0 while there is none), the text, then bytes. */

import type { GpuAnswer } from "./messages";

const HEADER = 4;
const TEXT = 1 << 14;
/** Characters of messages that are passed on, of at most three bytes, or six in quotes. */
const MAX_LENGTH = 1024;

export function newReply(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER + TEXT + bytes);
}

/** Put an answer into its place, and wake who waits for it. */
export function writeReply(reply: SharedArrayBuffer, answer: GpuAnswer, bytes?: Uint8Array): void {
  const short = (_: string, value: unknown): unknown =>
    typeof value === "string" ? value.slice(0, MAX_LENGTH) : value;
  const text = new TextEncoder().encode(JSON.stringify(answer, short));
  const memory = new Uint8Array(reply);
  memory.set(text, HEADER);
  if (bytes) memory.set(bytes, HEADER + TEXT);
  const state = new Int32Array(reply, 0, 1);
  Atomics.store(state, 0, text.length);
  Atomics.notify(state, 0);
}

export function readReply(reply: SharedArrayBuffer): GpuAnswer {
  const length = Atomics.load(new Int32Array(reply, 0, 1), 0);
  const text = new Uint8Array(reply).slice(HEADER, HEADER + length);
  return JSON.parse(new TextDecoder().decode(text)) as GpuAnswer;
}

/** A copy of the bytes. */
export function replyBytes(reply: SharedArrayBuffer): Uint8Array {
  return new Uint8Array(reply).slice(HEADER + TEXT);
}
