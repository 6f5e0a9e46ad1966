/** Shared memory for an answer: the length of its text (0 while there is none), the text, then bytes. */

const HEADER = 4;
/** Room for the text, whose strings are cut: in JSON each of their characters takes six bytes at most. */
const TEXT = 1 << 16;
const MAX_LENGTH = 4096;

/** Memory for a text of common length, and so many bytes more. */
export function newReply(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER + TEXT + bytes);
}

/** Put an answer, and arrays behind it, into its place, and wake who waits for it. */
export function writeReply(
  reply: SharedArrayBuffer,
  answer: object,
  arrays: readonly Uint8Array[] = [],
): void {
  const short = (_: string, value: unknown): unknown =>
    typeof value === "string" ? value.slice(0, MAX_LENGTH) : value;
  const text = new TextEncoder().encode(JSON.stringify(answer, short));
  const memory = new Uint8Array(reply);
  let end = HEADER;
  for (const part of [text, ...arrays]) {
    memory.set(part, end);
    end += part.length;
  }
  const state = new Int32Array(reply, 0, 1);
  Atomics.store(state, 0, text.length);
  Atomics.notify(state, 0);
}

/** The answer and a copy of the bytes, `size` of them; null while there is none. */
export function readReply<T>(
  reply: SharedArrayBuffer,
  size?: number,
): { answer: T; bytes: Uint8Array } | null {
  const length = Atomics.load(new Int32Array(reply, 0, 1), 0);
  if (length === 0) return null;
  const start = HEADER + length;
  const memory = new Uint8Array(reply);
  return {
    answer: JSON.parse(new TextDecoder().decode(memory.slice(HEADER, start))) as T,
    bytes: memory.slice(start, size === undefined ? undefined : start + size),
  };
}
