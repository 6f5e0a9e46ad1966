/** What Python's worker and the worker that has the GPU say to each other, where one waits by memory. */

/** Stands for what the other worker has, which knows it by the number. */
export class Handle {
  constructor(readonly number: number) {}
}

/** A method of a device and its arguments, handles in the place of what only the other worker has. */
export interface GpuQuestion {
  device: number;
  name: string;
  args: unknown[];
  /** What is made gets this number. */
  result?: number;
  /** Memory for the answer of what is waited for. */
  reply?: SharedArrayBuffer;
}

export interface GpuAnswer {
  /** What a method gives, true for what got a number; an array of bytes follows in the memory. */
  value: unknown;
  /** Why the device is of no use any more; "" while it is of use. */
  lost: string;
  /** Why there is no value. */
  error?: string;
  /** Of which kind the error is. */
  errorName?: string;
}

export interface GpuFacts {
  description: string;
  limits: Record<string, number>;
  features: string[];
}

/** The first message to the worker: its end of the line, and the question that came before. */
export interface GpuStart {
  port: MessagePort;
  first: GpuQuestion;
}
