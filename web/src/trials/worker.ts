/** A light worker: one WebAssembly memory, one kernel at a time, and nothing else to lose. */

import { calibrationTimer, type KernelHost, runKernel } from "./kernel";
import {
  type FromTrialWorker,
  failure,
  type ToTrialWorker,
  type TrialOutcome,
  type Workload,
} from "./protocol";

const port = self as unknown as {
  postMessage(message: FromTrialWorker, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToTrialWorker>) => void) | null;
};

let workload: Workload | null = null;
let host: KernelHost | null = null;
let pace: (() => number) | null = null;
let memory: WebAssembly.Memory | null = null;

port.onmessage = ({ data }) => {
  if (data.type === "workload") {
    workload = data.workload;
    // The same text that Python's own host runs, so that both measure alike.
    // biome-ignore lint/security/noGlobalEval: the text comes from our own package, by Python's worker.
    host ??= globalThis.eval(workload.script) as KernelHost;
    return;
  }
  let outcome: TrialOutcome;
  try {
    pace ??= calibrationTimer(host!, workload!.pace);
    memory ??= new WebAssembly.Memory({ initial: 1 });
    outcome = runKernel(host!, pace, memory, workload!.arrays, data.job);
  } catch (error) {
    // Whatever it grew to is given back.
    memory = null;
    outcome =
      error instanceof Error
        ? failure(error.name, error.message, error.stack)
        : failure("Error", String(error));
  }
  const buffers = outcome.ok
    ? (outcome.arrays ?? []).map(({ buffer }) => buffer as ArrayBuffer)
    : [];
  port.postMessage({ type: "outcome", outcome }, buffers);
};

port.postMessage({ type: "up" });
