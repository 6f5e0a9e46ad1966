/** The end of Python's worker: gives the iterations of parallel loops to threads of the page. */

import type { EndThreadsMessage, StartThreadsMessage } from "../python/messages";
import { type Failure, MAX_THREADS, type Slot, Slots, State } from "./slots";

type Entry = (first: number, last: number, record: number, scratch: number) => void;

/** Milliseconds between two looks whether the program is to stop. */
const LOOK = 50;
/** Milliseconds that threads have to end. */
const END = 10_000;

interface Kernel {
  id: number;
  code: number;
  codeBytes: number;
}

export class ThreadLauncher {
  /** Raises what an interrupt means in Python. */
  onInterrupt: () => void = () => undefined;

  private slots = new Slots();
  private memory: WebAssembly.Memory | null = null;
  /** Threads of a launch, the caller among them, and how many there have been begun. */
  private count = 1;
  private started = 1;
  /** Scratch memory of the caller, and bytes from one thread's to the next one's. */
  private scratch = 0;
  private stride = 0;
  private lastKernel = 0;

  /** Held as a function: programs reach this object, and are not to send what they like. */
  readonly #send: (message: StartThreadsMessage | EndThreadsMessage) => void;
  readonly #interrupt: Uint8Array;

  constructor(
    send: (message: StartThreadsMessage | EndThreadsMessage) => void,
    interrupt: Uint8Array,
  ) {
    this.#send = send;
    this.#interrupt = interrupt;
  }

  /** How many tasks each thread has begun, the caller first. */
  get runs(): number[] {
    return this.slots.runs;
  }

  /** Use `count` threads from now on, with scratch memory at this address. */
  provide(memory: WebAssembly.Memory, count: number, scratch: number, stride: number): void {
    this.memory = memory;
    this.count = Math.min(count, MAX_THREADS);
    this.scratch = scratch;
    this.stride = stride;
    this.start();
  }

  /** The launch function of the kernel with the code at this address. */
  kernel(
    code: number,
    codeBytes: number,
  ): (exports: WebAssembly.Exports, ...task: number[]) => void {
    const kernel = { id: ++this.lastKernel, code, codeBytes };
    return (exports, ...task) =>
      this.launch(kernel, exports, ...(task as [number, number, number, number]));
  }

  private launch(
    kernel: Kernel,
    exports: WebAssembly.Exports,
    loop: number,
    first: number,
    last: number,
    record: number,
  ): void {
    const entry = exports[`parallel.${loop}`] as Entry;
    const size = Math.ceil((last - first) / this.count);
    const ranges: [first: number, last: number][] = [];
    for (let start = first; start < last; start += size) {
      ranges.push([start, Math.min(start + size, last)]);
    }
    for (let number = 1; number < ranges.length; number += 1) {
      const [start, end] = ranges[number]!;
      this.slots.at(number).post({
        kernel: kernel.id,
        code: kernel.code,
        codeBytes: kernel.codeBytes,
        loop,
        first: start,
        last: end,
        record,
        scratch: this.scratch + number * this.stride,
      });
    }
    const errors: unknown[] = [];
    for (const [number, range] of ranges.entries()) {
      // Nobody waits for a thread that sleeps, or has not started yet.
      if (number > 0 && !this.slots.at(number).claim(State.IDLE)) continue;
      if (errors.some(Boolean)) continue;
      this.slots.at(0).count();
      try {
        entry(...range, record, this.scratch);
      } catch (error) {
        errors[number] = error;
      }
    }
    for (let number = 1; number < ranges.length; number += 1) {
      const failure = this.outcome(this.slots.at(number));
      if (failure) errors[number] = asError(failure, exports);
    }
    const error = errors.find(Boolean);
    if (error) throw error;
  }

  /** What became of a thread's task, as soon as it has ended. */
  private outcome(slot: Slot): Failure | null {
    while (slot.state === State.RUNNING) {
      if (this.#interrupt[0] !== 0) this.interrupt();
      slot.wait(State.RUNNING, LOOK);
    }
    const failure = slot.state === State.FAILED ? slot.failure() : null;
    slot.become(State.IDLE);
    return failure;
  }

  /** End all threads; others take their place. */
  private interrupt(): never {
    const ended = this.slots;
    this.slots = new Slots();
    this.#send({ type: "endThreads" });
    // They write to arrays until they have ended.
    ended.waitForEnd(END);
    this.started = 1;
    this.start();
    this.onInterrupt();
    throw new Error("interrupted");
  }

  private start(): void {
    if (!this.memory || this.started >= this.count) return;
    const { memory, slots, started: first, count } = this;
    this.#send({ type: "startThreads", memory, slots: slots.memory, first, count });
    this.started = count;
  }
}

/** The error of a thread as one of the caller's; the kernel's globals say what they say there. */
function asError(
  { name, message, stack, check, index }: Failure,
  exports: WebAssembly.Exports,
): Error {
  for (const [variable, value] of [
    [exports.fault_check, check],
    [exports.fault_index, index],
  ] as const) {
    if (variable instanceof WebAssembly.Global) variable.value = value;
  }
  return Object.assign(new Error(message), { name, stack });
}
