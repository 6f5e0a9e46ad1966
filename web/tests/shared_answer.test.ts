import { expect, test } from "vitest";
import type { ToTrialPool } from "../src/python/messages";
import type { TrialJob, TrialOutcome } from "../src/python/wire";
import { TrialLine } from "../src/trials/line";
import { failure, newAnswer, readAnswer, writeAnswer } from "../src/trials/shared_answer";

const bell = (): SharedArrayBuffer => new SharedArrayBuffer(4);
const success = (arrays?: Uint8Array[]): TrialOutcome => ({
  ok: true,
  seconds: [0.25, 1e-9],
  calibration: [1],
  arrays,
});

test("an outcome is read as it was written, and rings", () => {
  const rung = bell();
  const reply = newAnswer(rung, 5, 2);
  expect(readAnswer(reply)).toBeNull();
  const outcome = success([new Uint8Array([1, 2, 3]), new Uint8Array([255, 0])]);
  writeAnswer(reply, outcome);
  expect(readAnswer(reply)).toEqual(outcome);
  expect(new Int32Array(rung)[0]).toBe(1);
});

test("buffers that are as expected are left out", () => {
  const reply = newAnswer(bell(), 1 << 20, 2);
  writeAnswer(reply, success());
  const outcome = readAnswer(reply)!;
  expect(outcome).toEqual(success());
  // Python asks for it by name.
  expect("arrays" in outcome).toBe(true);
});

test("a failure whose message is endless is cut to the room", () => {
  const reply = newAnswer(bell(), 0, 1);
  writeAnswer(reply, failure("RuntimeError", "ü".repeat(1e6), "at a\n".repeat(1e6)));
  const outcome = readAnswer(reply) as TrialOutcome & { ok: false };
  expect(outcome.kind).toBe("RuntimeError");
  expect(outcome.message).toBe("ü".repeat(4096));
});

test("so many batches as asked for find room", () => {
  const batches = 50_000;
  const reply = newAnswer(bell(), 0, batches);
  const times = Array.from({ length: batches }, () => 0.1234567890123456);
  const outcome: TrialOutcome = { ok: true, seconds: times, calibration: times, arrays: undefined };
  writeAnswer(reply, outcome);
  expect(readAnswer(reply)).toEqual(outcome);
});

test("a line collects what is answered, each once, and blocks no longer than it is told", () => {
  const told: ToTrialPool[] = [];
  const line = new TrialLine({
    postMessage: (message: ToTrialPool) => told.push(message),
  } as unknown as MessagePort);
  expect(line.collect(1)).toEqual([]);
  const job = { batches: 1 } as TrialJob;
  const first = line.ask(7, job);
  const second = line.ask(7, job);
  const reply = (id: number) =>
    told.flatMap((message) =>
      message.type === "run" && message.id === id ? [message.reply!] : [],
    )[0]!;
  expect(line.collect(1)).toEqual([]);
  writeAnswer(reply(second), success());
  expect(line.collect(1000)).toEqual([[second, success()]]);
  writeAnswer(reply(first), success());
  expect(line.collect(1000)).toEqual([[first, success()]]);
  expect(line.collect(1)).toEqual([]);
});
