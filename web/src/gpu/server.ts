/** The other end of a `GpuLine`: has the devices, and does what is asked, one after the other. */

import { message } from "../errors";
import type { GpuQuestion } from "./messages";
import { writeReply } from "./reply";

/** What `page_gpu.js` opens. */
export interface Gpu {
  lost: string;
  description: string;
  limits: Record<string, number>;
  features: string[];
  createBuffer(length: number): Promise<object | null>;
  createSmallBuffer(length: number): object;
  destroyBuffer(buffer: unknown): void;
  write(buffer: unknown, bytes: Uint8Array): void;
  read(buffer: unknown, length: number): Promise<Uint8Array | null>;
  createPipeline(
    code: string,
    entryPoint: string,
  ): Promise<{ pipeline: object } | { message: string; line: number } | null>;
  createBindings(
    pipeline: unknown,
    buffers: unknown[],
    lengths: number[],
    scalars: Uint8Array,
  ): object;
  dispatch(...launch: unknown[]): void;
  wait(): Promise<void>;
  time(launches: unknown[][], number: number): Promise<number>;
}

export interface GpuHost {
  open(limits: string[], features: string[], patience: number): Promise<Gpu>;
}

export class GpuServer {
  private readonly things = new Map<number, unknown>();
  private queue: Promise<void> = Promise.resolve();

  constructor(private readonly host: GpuHost) {}

  receive(question: GpuQuestion): void {
    this.queue = this.queue.then(() => this.answer(question));
  }

  private async answer(question: GpuQuestion): Promise<void> {
    const { device, reply } = question;
    let value: unknown = null;
    let error: string | undefined;
    try {
      value = await this.perform(question);
    } catch (failure) {
      error = message(failure);
    }
    const gpu = this.things.get(device) as Gpu | undefined;
    // Who did not wait is told when next asking.
    if (error !== undefined && !reply && gpu) gpu.lost ||= `The GPU failed (${error}).`;
    if (!reply) return;
    const lost = gpu?.lost ?? "";
    if (value instanceof Uint8Array) writeReply(reply, { value: null, lost, error }, value);
    else writeReply(reply, { value, lost, error });
  }

  private async perform({ device, name, args }: GpuQuestion): Promise<unknown> {
    const numbers = args as number[];
    const of = (number: number): unknown => this.things.get(number);
    if (name === "forget") return this.things.delete(numbers[0]!);
    if (name === "open") {
      const opened = await this.host.open(...(args as Parameters<GpuHost["open"]>));
      this.things.set(device, opened);
      const { description, limits, features } = opened;
      return { description, limits, features };
    }
    const gpu = of(device) as Gpu;
    switch (name) {
      case "createBuffer": {
        const buffer = await gpu.createBuffer(numbers[1]!);
        if (buffer) this.things.set(numbers[0]!, buffer);
        return buffer !== null;
      }
      case "createSmallBuffer":
        this.things.set(numbers[0]!, gpu.createSmallBuffer(numbers[1]!));
        return null;
      case "destroyBuffer":
        return gpu.destroyBuffer(of(numbers[0]!));
      case "write":
        return gpu.write(of(numbers[0]!), args[1] as Uint8Array);
      case "read":
        return gpu.read(of(numbers[0]!), numbers[1]!);
      case "createPipeline": {
        const outcome = await gpu.createPipeline(args[1] as string, args[2] as string);
        if (!outcome || !("pipeline" in outcome)) return outcome;
        this.things.set(numbers[0]!, outcome.pipeline);
        return null;
      }
      case "createBindings": {
        const [bindings, pipeline, buffers, lengths, scalars] = args as [
          number,
          number,
          number[],
          number[],
          Uint8Array,
        ];
        this.things.set(
          bindings,
          gpu.createBindings(of(pipeline), buffers.map(of), lengths, scalars),
        );
        return null;
      }
      case "dispatch":
        return gpu.dispatch(...this.launch(numbers));
      case "wait":
        return gpu.wait();
      case "time":
        return gpu.time(
          (args[0] as number[][]).map((launch) => this.launch(launch)),
          numbers[1]!,
        );
    }
    throw new Error(`A GPU has no ${name}`);
  }

  private launch([pipeline, bindings, ...grid]: number[]): unknown[] {
    return [this.things.get(pipeline!), this.things.get(bindings!), ...grid];
  }
}
