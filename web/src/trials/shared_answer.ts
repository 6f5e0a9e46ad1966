/**
 * Outcomes of trials by shared memory, for a Python that blocks its worker while it waits: no message
 * arrives there. A bell, common to all, counts the answers.
 */

import type { SharedReply } from "../python/messages";
import { newReply, readReply, writeReply } from "../python/reply";
import type { TrialFailure, TrialOutcome } from "../python/wire";

/** Bytes of the times of a batch, as text. */
const PER_BATCH = 64;

export function failure(kind: string, message: string, stack = ""): TrialFailure {
  return { ok: false, kind, message, stack };
}

export function newAnswer(
  bell: SharedArrayBuffer,
  arrayBytes: number,
  batches: number,
): SharedReply {
  return { bell, answer: newReply(PER_BATCH * batches + arrayBytes) };
}

/** Put an outcome into its place, and ring. */
export function writeAnswer({ bell, answer }: SharedReply, outcome: TrialOutcome): void {
  const arrays = (outcome.ok && outcome.arrays) || [];
  writeReply(answer, { ...outcome, arrays: arrays.map(({ length }) => length) }, arrays);
  const count = new Int32Array(bell);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
}

/** The outcome, once it is there; else null. */
export function readAnswer({ answer }: SharedReply): TrialOutcome | null {
  const reply = readReply<TrialOutcome & { arrays: number[] }>(answer);
  if (!reply) return null;
  const { answer: outcome, bytes } = reply;
  let end = 0;
  const take = (size: number): Uint8Array => {
    end += size;
    return bytes.slice(end - size, end);
  };
  // No buffers at all means that they are as expected.
  const arrays = outcome.arrays.length ? outcome.arrays.map(take) : undefined;
  return (outcome.ok ? { ...outcome, arrays } : outcome) as TrialOutcome;
}
