/**
 * Outcomes of trials by shared memory, for a Python that blocks its worker while it waits: no message
 * arrives there.
 *
 * Each question comes with memory for its answer, which has the length of the text in front (0 while
 * there is no answer), then the text, then the buffers. A bell, common to all, counts the answers.
 */

import type { SharedReply } from "../python/messages";
import type { TrialFailure, TrialOutcome } from "../python/wire";

const HEADER = 4;
/** Room for the text, which holds the times of all batches, or an error's message. */
const TEXT = 1 << 16;
const PER_BATCH = 64;
/** Characters of an error's parts that are passed on. */
const MAX_LENGTH = 4096;

export function failure(kind: string, message: string, stack = ""): TrialFailure {
  return { ok: false, kind, message, stack };
}

export function newReply(
  bell: SharedArrayBuffer,
  arrayBytes: number,
  batches: number,
): SharedReply {
  const bytes = HEADER + TEXT + PER_BATCH * batches + arrayBytes;
  return { bell, answer: new SharedArrayBuffer(bytes) };
}

/** Put an outcome into its place, and ring. */
export function writeAnswer({ bell, answer }: SharedReply, outcome: TrialOutcome): void {
  const arrays = (outcome.ok && outcome.arrays) || [];
  const text = new TextEncoder().encode(
    JSON.stringify({ ...shortened(outcome), arrays: arrays.map(({ length }) => length) }),
  );
  const bytes = new Uint8Array(answer);
  let end = HEADER;
  for (const part of [text, ...arrays]) {
    bytes.set(part, end);
    end += part.length;
  }
  Atomics.store(new Int32Array(answer, 0, 1), 0, text.length);
  const count = new Int32Array(bell);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
}

/** The outcome, once it is there; else null. */
export function readAnswer({ answer }: SharedReply): TrialOutcome | null {
  const length = Atomics.load(new Int32Array(answer, 0, 1), 0);
  if (length === 0) return null;
  let end = HEADER;
  const take = (size: number): Uint8Array => {
    end += size;
    return new Uint8Array(answer).slice(end - size, end);
  };
  const outcome = JSON.parse(new TextDecoder().decode(take(length))) as TrialOutcome & {
    arrays: number[];
  };
  // No buffers at all means that they are as expected.
  const arrays = outcome.arrays.length ? outcome.arrays.map(take) : undefined;
  return (outcome.ok ? { ...outcome, arrays } : outcome) as TrialOutcome;
}

function shortened(outcome: TrialOutcome): TrialOutcome {
  if (outcome.ok) return outcome;
  const { kind, message, stack } = outcome;
  return failure(kind, message.slice(0, MAX_LENGTH), stack.slice(0, MAX_LENGTH));
}
