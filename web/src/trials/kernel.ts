/** One trial: lay out the buffers, run the kernel, look at what it left, time it. */

import type { CalibrationWork, TrialArray, TrialJob, TrialSuccess } from "../python/wire";

/** The part of the JavaScript half of Python's host that trials use. */
export interface KernelHost {
  /** For an export that repeats a kernel: the seconds that `number` calls take, once it is warm. */
  timer(repeat: Callable, limits: WarmUp): (number: number, ...values: number[]) => number;
}

type Callable = (...values: number[]) => void;

/**
 * Until the browser has made its best code of a kernel; milliseconds. Beside other work batches
 * hardly ever agree, so that the longest time is what counts.
 */
interface WarmUp {
  batch: number;
  least: number;
  longest: number;
}

const WARM_UP: WarmUp = { batch: 3, least: 10, longest: 30 };

/**
 * Calls that show that a kernel is slow. With two workers on two cores the best of two was seen
 * to take 18 times as long as once the browser's better code was there; the best of four, 2.1 times.
 */
const FIRST_CALLS = 4;

const PAGE_BYTES = 65536;
const ALIGNMENT = 64;
/** As in Python's own device memory, too: large arrays begin at different places of a page. */
const STAGGER = 17 * ALIGNMENT;
const LARGE = 8192;
/** Nothing lies below, as in Python's own device memory. */
const FIRST_ADDRESS = 4096;

const FLOATS: Record<string, typeof Float32Array | typeof Float64Array> = {
  float32: Float32Array,
  float64: Float64Array,
};

export class OutOfMemory extends Error {
  override name = "OutOfMemory";
}

export function runKernel(
  host: KernelHost,
  calibrate: () => number,
  memory: WebAssembly.Memory,
  shared: TrialArray[],
  job: TrialJob,
): TrialSuccess {
  const arrays = [...shared];
  for (const { index, array } of job.replaced ?? []) arrays[index] = array;
  const [addresses, end] = layOut([...arrays.map(({ input }) => input.length), job.scratchBytes]);
  grow(memory, end);
  for (const [index, { input }] of arrays.entries()) {
    new Uint8Array(memory.buffer).set(input, addresses[index]);
  }
  const module = new WebAssembly.Module(job.code as Uint8Array<ArrayBuffer>);
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const call = (): number => {
    const start = performance.now();
    (exports[job.entry] as Callable)(...addresses);
    return performance.now() - start;
  };
  const first = call();
  const asExpected = arrays.every((array, index) => agrees(memory, addresses[index]!, array));
  const left = asExpected
    ? undefined
    : arrays.map(({ input }, index) => copy(memory, addresses[index]!, input.length));
  const quickest = quickestOf(call, first, job.earlyStopMs);
  if (quickest > job.earlyStopMs)
    return { ok: true, seconds: [quickest * 1e-3], calibration: [], arrays: left };
  const timer = host.timer(exports[job.repeated] as Callable, WARM_UP);
  const seconds: number[] = [];
  let number = 1;
  let spentMs = 0;
  const calibration = [calibrate()];
  while (seconds.length < (spentMs > job.enoughMs ? job.fewest : job.batches)) {
    const batch = longEnough((calls) => timer(calls, ...addresses) * 1e3, number, job.minMs);
    number = batch.number;
    seconds.push((batch.ms * 1e-3) / number);
    spentMs += batch.ms;
    calibration.push(calibrate());
  }
  return { ok: true, seconds, calibration, arrays: left };
}

/** A function that does the fixed work, and gives the seconds that it takes. */
export function calibrationTimer(
  host: KernelHost,
  { code, iterations, minMs }: CalibrationWork,
): () => number {
  const module = new WebAssembly.Module(code as Uint8Array<ArrayBuffer>);
  const { exports } = new WebAssembly.Instance(module, {
    env: { memory: new WebAssembly.Memory({ initial: 1 }) },
  });
  const timer = host.timer(exports.work as Callable, WARM_UP);
  let number = 1;
  return () => {
    // How often cannot be settled once: where an interruption filled the time, too few would do.
    const batch = longEnough((rounds) => timer(rounds * iterations, 0) * 1e3, number, minMs);
    number = batch.number;
    return (batch.ms * 1e-3) / number;
  };
}

/**
 * A batch of `number` calls, or of enough more to take `minMs`. Where the clock is coarse a
 * short batch takes no time at all, so one short batch does not tell how many are enough.
 */
function longEnough(
  time: (number: number) => number,
  number: number,
  minMs: number,
): { number: number; ms: number } {
  for (;;) {
    const ms = time(number);
    if (ms >= minMs) return { number, ms };
    number = Math.ceil(number * Math.min(16, Math.max(1.6, (1.05 * minMs) / ms)));
  }
}

/** The quickest of the first calls; there are no more of them once one is within the limit. */
function quickestOf(call: () => number, first: number, limitMs: number): number {
  let quickest = first;
  for (let calls = 1; quickest > limitMs && calls < FIRST_CALLS; calls += 1) {
    quickest = Math.min(quickest, call());
  }
  return quickest;
}

/** Where blocks of these sizes lie, and where the last one ends. */
export function layOut(sizes: number[]): [addresses: number[], end: number] {
  let end = FIRST_ADDRESS;
  const addresses = sizes.map((size) => {
    const address = end;
    const room = Math.ceil(Math.max(size, 1) / ALIGNMENT) * ALIGNMENT;
    end += room < LARGE ? room : room + STAGGER;
    return address;
  });
  return [addresses, end];
}

function grow(memory: WebAssembly.Memory, bytes: number): void {
  const missing = Math.ceil(bytes / PAGE_BYTES) - memory.buffer.byteLength / PAGE_BYTES;
  if (missing <= 0) return;
  try {
    memory.grow(missing);
  } catch {
    throw new OutOfMemory(`The kernel and its buffers need ${Math.ceil(bytes / 2 ** 20)} MB`);
  }
}

/** Whether a buffer is as expected beyond doubt; where it is not, Python looks again. */
export function agrees(memory: WebAssembly.Memory, address: number, array: TrialArray): boolean {
  const { dtype, expected, tolerance } = array;
  if (expected === undefined) return false;
  const Floats = FLOATS[dtype];
  if (!Floats) {
    const actual = new Uint8Array(memory.buffer, address, expected.length);
    return actual.every((byte, index) => byte === expected[index]);
  }
  const length = expected.length / Floats.BYTES_PER_ELEMENT;
  const actual = new Floats(memory.buffer, address, length);
  const reference = new Floats(expected.buffer as ArrayBuffer, expected.byteOffset, length);
  for (let index = 0; index < length; index += 1) {
    // Written so that NaN counts as wrong.
    if (!(Math.abs(actual[index]! - reference[index]!) <= tolerance)) return false;
  }
  return true;
}

function copy(memory: WebAssembly.Memory, address: number, length: number): Uint8Array {
  return new Uint8Array(memory.buffer, address, length).slice();
}
