/**
 * The GPU for a Python that its browser cannot suspend: another worker has it, and Python's worker is
 * blocked while it waits. What waits for nothing is only sent there.
 */

import type { GpuAnswer, GpuFacts, GpuQuestion } from "./messages";
import { newReply, readReply, replyBytes } from "./reply";

/** Milliseconds between two looks whether the program is to stop. */
const LOOK = 50;
/** Milliseconds in which the other worker has to start. */
const START = 30_000;

/** Stands for what the other worker has. */
class Handle {
  constructor(readonly number: number) {}
}

type Launch = [pipeline: Handle, bindings: Handle, x: number, y: number, z: number];

export class GpuLine {
  /** Raises what an interrupt means in Python. */
  onInterrupt: () => void = () => undefined;

  /** Held here: programs reach this object, and are not to send what they like. */
  readonly #port: MessagePort;
  readonly #interrupt: Uint8Array;
  readonly #forgotten = new FinalizationRegistry<number>((number) => this.#send("forget", number));
  #last = 0;

  constructor(port: MessagePort, interrupt: Uint8Array) {
    this.#port = port;
    this.#interrupt = interrupt;
  }

  /** As of `page_gpu.js`, but at once. */
  open(limits: string[], features: string[], patience: number): object {
    const device = this.#handle();
    const ask = (name: string, args: unknown[], bytes = 0, limit = Infinity): GpuAnswer =>
      this.#ask({ device: device.number, name, args }, bytes, limit);
    const limit = START + patience * 1e3;
    const { value } = ask("open", [limits, features, patience], 0, limit);
    return new LineGpu(
      value as GpuFacts,
      ask,
      (name, ...args) => this.#port.postMessage({ device: device.number, name, args }),
      () => this.#handle(),
    );
  }

  #handle(): Handle {
    const handle = new Handle(++this.#last);
    this.#forgotten.register(handle, handle.number);
    return handle;
  }

  #send(name: string, ...args: unknown[]): void {
    this.#port.postMessage({ device: 0, name, args } satisfies GpuQuestion);
  }

  #ask(question: GpuQuestion, bytes: number, limit: number): GpuAnswer {
    const reply = newReply(bytes);
    const state = new Int32Array(reply, 0, 1);
    this.#port.postMessage({ ...question, reply });
    for (let waited = 0; Atomics.wait(state, 0, 0, LOOK) === "timed-out"; waited += LOOK) {
      if (waited > limit) throw new Error("the worker that has the GPU does not start");
      if (this.#interrupt[0] === 0) continue;
      this.onInterrupt();
      throw new Error("interrupted");
    }
    const answer = readReply(reply);
    if (answer.error !== undefined) throw new Error(answer.error);
    return bytes ? { ...answer, value: replyBytes(reply) } : answer;
  }
}

/** The methods of the `Gpu` of `page_gpu.js`, which give results instead of promises. */
class LineGpu {
  lost = "";
  readonly description: string;
  readonly limits: Record<string, number>;
  readonly features: string[];

  constructor(
    facts: GpuFacts,
    private readonly question: (name: string, args: unknown[], bytes?: number) => GpuAnswer,
    private readonly send: (name: string, ...args: unknown[]) => void,
    private readonly handle: () => Handle,
  ) {
    this.description = facts.description;
    this.limits = facts.limits;
    this.features = facts.features;
  }

  createBuffer(length: number): Handle | null {
    const buffer = this.handle();
    return this.ask("createBuffer", [buffer.number, length]) ? buffer : null;
  }

  createSmallBuffer(length: number): Handle {
    const buffer = this.handle();
    this.send("createSmallBuffer", buffer.number, length);
    return buffer;
  }

  destroyBuffer(buffer: Handle): void {
    this.send("destroyBuffer", buffer.number);
  }

  write(buffer: Handle, bytes: Uint8Array): void {
    this.send("write", buffer.number, bytes);
  }

  /** A copy of the first bytes; null in vain. */
  read(buffer: Handle, length: number): Uint8Array | null {
    const bytes = this.ask("read", [buffer.number, length], length) as Uint8Array;
    return this.lost ? null : bytes;
  }

  createPipeline(code: string, entryPoint: string): object {
    const pipeline = this.handle();
    const error = this.ask("createPipeline", [pipeline.number, code, entryPoint]);
    return (error as object | null) ?? { pipeline };
  }

  createBindings(
    pipeline: Handle,
    buffers: Handle[],
    lengths: number[],
    scalars: Uint8Array,
  ): Handle {
    const bindings = this.handle();
    const numbers = buffers.map(({ number }) => number);
    this.send("createBindings", bindings.number, pipeline.number, numbers, lengths, scalars);
    return bindings;
  }

  dispatch(...[pipeline, bindings, ...grid]: Launch): void {
    this.send("dispatch", pipeline.number, bindings.number, ...grid);
  }

  wait(): void {
    this.ask("wait", []);
  }

  time(launches: Launch[], number: number): number {
    const plain = launches.map(([pipeline, bindings, ...grid]) => [
      pipeline.number,
      bindings.number,
      ...grid,
    ]);
    return this.ask("time", [plain, number]) as number;
  }

  private ask(name: string, args: unknown[], bytes = 0): unknown {
    const { value, lost } = this.question(name, args, bytes);
    this.lost = lost;
    return value;
  }
}
