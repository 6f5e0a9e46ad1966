/**
 * The GPU for a Python that its browser cannot suspend: another worker has it, and Python's worker is
 * blocked while it waits. What waits for nothing is only sent there.
 */

import { newReply, readReply } from "../python/reply";
import { type GpuAnswer, type GpuFacts, type GpuQuestion, Handle } from "./messages";

/** Milliseconds between two looks whether the program is to stop. */
const LOOK = 50;
/** Milliseconds in which the other worker has to start. */
const START = 30_000;

/** How a method is called: what it makes, the bytes that it answers, milliseconds to wait. */
interface Manner {
  makes?: Handle;
  bytes?: number;
  limit?: number;
}

export class GpuLine {
  /** Raises what an interrupt means in Python. */
  onInterrupt: () => void = () => undefined;

  /** Held here: programs reach this object, and are not to send what they like. */
  readonly #port: MessagePort;
  readonly #interrupt: Uint8Array;
  readonly #forgotten = new FinalizationRegistry<number>((number) =>
    this.#port.postMessage({ device: 0, name: "forget", args: [number] } satisfies GpuQuestion),
  );
  #last = 0;

  constructor(port: MessagePort, interrupt: Uint8Array) {
    this.#port = port;
    this.#interrupt = interrupt;
  }

  /** As of `page_gpu.js`, but at once. */
  open(limits: string[], features: string[], patience: number): object {
    const device = this.#handle();
    const ask = (name: string, args: unknown[], manner: Manner = {}): GpuAnswer =>
      this.#ask({ device: device.number, name, args, result: manner.makes?.number }, manner);
    const send = (name: string, args: unknown[], makes?: Handle): void =>
      this.#port.postMessage({ device: device.number, name, args, result: makes?.number });
    const limit = START + patience * 1e3;
    const { value } = ask("open", [limits, features, patience], { limit });
    return new LineGpu(value as GpuFacts, ask, send, () => this.#handle());
  }

  #handle(): Handle {
    const handle = new Handle(++this.#last);
    this.#forgotten.register(handle, handle.number);
    return handle;
  }

  #ask(question: GpuQuestion, { bytes = 0, limit = Infinity }: Manner): GpuAnswer {
    const reply = newReply(bytes);
    const state = new Int32Array(reply, 0, 1);
    this.#port.postMessage({ ...question, reply });
    for (let waited = 0; Atomics.wait(state, 0, 0, LOOK) === "timed-out"; waited += LOOK) {
      if (waited > limit) throw named("TimeoutError", "the worker that has the GPU does not start");
      if (this.#interrupt[0] === 0) continue;
      this.onInterrupt();
      throw new Error("interrupted");
    }
    const { answer, bytes: value } = readReply<GpuAnswer>(reply, bytes)!;
    if (answer.error !== undefined) throw named(answer.errorName ?? "Error", answer.error);
    return bytes ? { ...answer, value } : answer;
  }
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

/** The methods of the `Gpu` of `page_gpu.js`, which give results instead of promises. */
class LineGpu {
  lost = "";
  readonly description: string;
  readonly limits: Record<string, number>;
  readonly features: string[];

  constructor(
    facts: GpuFacts,
    private readonly question: (name: string, args: unknown[], manner?: Manner) => GpuAnswer,
    private readonly send: (name: string, args: unknown[], makes?: Handle) => void,
    private readonly handle: () => Handle,
  ) {
    this.description = facts.description;
    this.limits = facts.limits;
    this.features = facts.features;
  }

  createBuffer(...args: unknown[]): Handle | null {
    const makes = this.handle();
    return this.ask("createBuffer", args, { makes }) ? makes : null;
  }

  createSmallBuffer(...args: unknown[]): Handle {
    return this.make("createSmallBuffer", args);
  }

  destroyBuffer(...args: unknown[]): void {
    this.send("destroyBuffer", args);
  }

  write(...args: unknown[]): void {
    this.send("write", args);
  }

  /** A copy of the first bytes; null in vain. */
  read(buffer: Handle, bytes: number): Uint8Array | null {
    const value = this.ask("read", [buffer, bytes], { bytes }) as Uint8Array;
    return this.lost ? null : value;
  }

  createPipeline(...args: unknown[]): unknown {
    const pipeline = this.handle();
    const value = this.ask("createPipeline", args, { makes: pipeline });
    return value === true ? { pipeline } : value;
  }

  createBindings(...args: unknown[]): Handle {
    return this.make("createBindings", args);
  }

  dispatch(...args: unknown[]): void {
    this.send("dispatch", args);
  }

  wait(): void {
    this.ask("wait", []);
  }

  time(...args: unknown[]): unknown {
    return this.ask("time", args);
  }

  private make(name: string, args: unknown[]): Handle {
    const handle = this.handle();
    this.send(name, args, handle);
    return handle;
  }

  private ask(name: string, args: unknown[], manner?: Manner): unknown {
    const { value, lost } = this.question(name, args, manner);
    this.lost = lost;
    return value;
  }
}
