/**
 * The memory in which a launch hands tasks to threads, and they say what became of them.
 *
 * The caller has slot 0, each other thread one of those that follow. A task begins when its thread
 * claims it; until then its caller may take it back.
 */

/** Threads of a launch, the caller among them. */
export const MAX_THREADS = 64;

export const State = { IDLE: 0, READY: 1, RUNNING: 2, DONE: 3, FAILED: 4 } as const;

/** Some iterations of a parallel loop; addresses are those of the device memory. */
export interface Task {
  /** Tells kernels apart. */
  kernel: number;
  code: number;
  codeBytes: number;
  loop: number;
  first: number;
  last: number;
  record: number;
  scratch: number;
}

/** How a kernel was stopped; `check` and `index` are the values of its globals. */
export interface Failure {
  name: string;
  message: string;
  stack: string;
  check: number;
  index: number;
}

/** What the caller of all threads gets: they have been ended. */
const ENDED = 1;
const STATE = 0;
const RUNS = 1;
const TEXT_LENGTH = 2;
const FIELDS: readonly (keyof Task)[] = [
  ..."kernel code codeBytes loop first last record scratch".split(" "),
] as (keyof Task)[];
const FIRST_FIELD = 3;
const TEXT = 64;
const SLOT_BYTES = 8192;
/** Characters of a text; in JSON each takes six bytes at most. */
const MAX_TEXT = 600;

export class Slot {
  private readonly numbers: Int32Array;
  private readonly text: Uint8Array;

  constructor(memory: SharedArrayBuffer, number: number) {
    const start = number * SLOT_BYTES;
    this.numbers = new Int32Array(memory, start, TEXT / 4);
    this.text = new Uint8Array(memory, start + TEXT, SLOT_BYTES - TEXT);
  }

  get state(): number {
    return Atomics.load(this.numbers, STATE);
  }

  /** Tasks that the thread has begun. */
  get runs(): number {
    return Atomics.load(this.numbers, RUNS);
  }

  /** Block until the state is another one, or for `milliseconds` at most. */
  wait(state: number, milliseconds?: number): void {
    Atomics.wait(this.numbers, STATE, state, milliseconds);
  }

  post(task: Task): void {
    for (const [index, name] of FIELDS.entries()) this.numbers[FIRST_FIELD + index] = task[name];
    this.become(State.READY);
  }

  /** The task that is there, from now on the caller's; false where another thread was first. */
  claim(state: number = State.RUNNING): boolean {
    const { READY } = State;
    return Atomics.compareExchange(this.numbers, STATE, READY, state) === READY;
  }

  task(): Task {
    const task = {} as Task;
    for (const [index, name] of FIELDS.entries()) task[name] = this.numbers[FIRST_FIELD + index]!;
    return task;
  }

  count(): void {
    Atomics.add(this.numbers, RUNS, 1);
  }

  become(state: number): void {
    Atomics.store(this.numbers, STATE, state);
    Atomics.notify(this.numbers, STATE);
  }

  fail(failure: Failure): void {
    const stack = failure.stack.slice(0, MAX_TEXT);
    const message = failure.message.slice(0, MAX_TEXT);
    const text = new TextEncoder().encode(JSON.stringify({ ...failure, stack, message }));
    this.text.set(text);
    this.numbers[TEXT_LENGTH] = text.length;
    this.become(State.FAILED);
  }

  failure(): Failure {
    const text = new TextDecoder().decode(this.text.slice(0, this.numbers[TEXT_LENGTH]));
    return JSON.parse(text) as Failure;
  }
}

export class Slots {
  private readonly all: Slot[];
  private readonly ended: Int32Array;

  constructor(readonly memory = new SharedArrayBuffer((MAX_THREADS + 1) * SLOT_BYTES)) {
    this.all = Array.from({ length: MAX_THREADS }, (_, number) => new Slot(memory, number));
    this.ended = new Int32Array(memory, MAX_THREADS * SLOT_BYTES, 1);
  }

  at(number: number): Slot {
    return this.all[number]!;
  }

  /** How many tasks each thread has begun. */
  get runs(): number[] {
    return this.all.map(({ runs }) => runs);
  }

  /** Tell that no thread of these slots runs any more. */
  end(): void {
    Atomics.store(this.ended, 0, ENDED);
    Atomics.notify(this.ended, 0);
  }

  waitForEnd(milliseconds: number): void {
    Atomics.wait(this.ended, 0, 0, milliseconds);
  }
}
