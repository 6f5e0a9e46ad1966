/** The other end of a `GpuLine`: has the devices, and does what is asked, one after the other. */

import { message } from "../errors";
import { writeReply } from "../python/reply";
import type { GpuFacts, GpuQuestion, Handle } from "./messages";

const METHODS = [
  ..."createBuffer createSmallBuffer destroyBuffer write read createPipeline".split(" "),
  ..."createBindings dispatch wait time".split(" "),
];

/** What `page_gpu.js` opens, with these methods. */
export interface Gpu extends GpuFacts {
  lost: string;
  [method: string]: unknown;
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
    let errorName: string | undefined;
    try {
      value = await this.perform(question);
    } catch (failure) {
      error = message(failure);
      errorName = (failure as Error).name;
    }
    const gpu = this.things.get(device) as Gpu | undefined;
    // Who did not wait is told when next asking.
    if (error !== undefined && !reply && gpu) gpu.lost ||= `The GPU failed (${error}).`;
    if (!reply) return;
    const lost = gpu?.lost ?? "";
    if (value instanceof Uint8Array) writeReply(reply, { value: null, lost }, [value]);
    else writeReply(reply, { value, lost, error, errorName });
  }

  private async perform({ device, name, args, result }: GpuQuestion): Promise<unknown> {
    if (name === "forget") return this.things.delete(args[0] as number);
    if (name === "open") {
      const opened = await this.host.open(...(args as Parameters<GpuHost["open"]>));
      this.things.set(device, opened);
      const { description, limits, features } = opened;
      return { description, limits, features };
    }
    if (!METHODS.includes(name)) throw new Error(`A GPU has no ${name}`);
    const gpu = this.things.get(device) as Record<string, (...args: unknown[]) => unknown>;
    const value = (await gpu[name]!(...args.map((each) => this.real(each)))) ?? null;
    const thing = value !== null && name === "createPipeline" ? pipelineOf(value) : value;
    if (result === undefined || thing === null) return value;
    this.things.set(result, thing);
    return true;
  }

  /** An argument, with what handles stand for in their places. */
  private real(arg: unknown): unknown {
    if (Array.isArray(arg)) return arg.map((each) => this.real(each));
    const isHandle = typeof arg === "object" && arg !== null && "number" in arg;
    return isHandle ? this.things.get((arg as Handle).number) : arg;
  }
}

/** The pipeline that was made; null where there is an error in its place. */
function pipelineOf(outcome: object): unknown {
  return "pipeline" in outcome ? outcome.pipeline : null;
}
