/** A light worker: one WebAssembly memory, one kernel at a time, and nothing else to lose. */

// The same functions as in Python's worker, so that both measure alike.
import host from "../../../mlcweb/runtime/host/page_script.js";
import type { FromTrialWorker, ToTrialWorker } from "../python/messages";
import type { TrialOutcome, TrialWorkload } from "../python/wire";
import { calibrationTimer, runKernel } from "./kernel";
import { failure } from "./shared_answer";

const port = self as unknown as {
  postMessage(message: FromTrialWorker, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToTrialWorker>) => void) | null;
};

let workload: TrialWorkload | null = null;
let calibrate: (() => number) | null = null;
let memory: WebAssembly.Memory | null = null;

port.onmessage = ({ data }) => {
  if (data.type === "workload") {
    workload = data.workload;
    return;
  }
  let outcome: TrialOutcome;
  try {
    calibrate ??= calibrationTimer(host, workload!.calibration);
    memory ??= new WebAssembly.Memory({ initial: 1 });
    outcome = runKernel(host, calibrate, memory, workload!.arrays, data.job);
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
