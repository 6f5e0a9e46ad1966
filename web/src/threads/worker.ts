/** A thread: runs parts of the parallel loops of kernels on the device memory of Python's worker. */

import type { ThreadMessage } from "../python/messages";
import { type Slot, Slots, State, type Task } from "./slots";

type Entry = (first: number, last: number, record: number, scratch: number) => void;

/** Kernels that a thread has ready. */
const MAX_KERNELS = 64;

addEventListener("message", ({ data }: MessageEvent<ThreadMessage>) => {
  const { memory, slots, number, lock } = data;
  // The lock is free again once this thread has really ended.
  void navigator.locks.request(lock, () => serve(memory, new Slots(slots).at(number)));
});

function serve(memory: WebAssembly.Memory, slot: Slot): never {
  const kernels = new Map<number, WebAssembly.Exports>();
  for (;;) {
    const { state } = slot;
    if (state !== State.READY) slot.wait(state);
    else if (slot.claim()) perform(memory, kernels, slot);
  }
}

function perform(
  memory: WebAssembly.Memory,
  kernels: Map<number, WebAssembly.Exports>,
  slot: Slot,
): void {
  slot.count();
  const task = slot.task();
  let exports: WebAssembly.Exports | undefined;
  try {
    exports = kernels.get(task.kernel) ?? instantiate(memory, kernels, task);
    const { first, last, record, scratch } = task;
    (exports[`parallel.${task.loop}`] as Entry)(first, last, record, scratch);
    slot.become(State.DONE);
  } catch (error) {
    const { name, message, stack = "" } = error instanceof Error ? error : new Error(String(error));
    const [check, index] = [numberOf(exports?.fault_check), numberOf(exports?.fault_index)];
    slot.fail({ name, message, stack, check, index });
  }
}

function instantiate(
  memory: WebAssembly.Memory,
  kernels: Map<number, WebAssembly.Exports>,
  { kernel, code, codeBytes }: Task,
): WebAssembly.Exports {
  const module = new WebAssembly.Module(
    new Uint8Array(memory.buffer, code >>> 0, codeBytes).slice(),
  );
  // A loop within a loop is serial.
  const parallel = { launch: () => undefined };
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, parallel });
  if (kernels.size >= MAX_KERNELS) kernels.delete(kernels.keys().next().value!);
  kernels.set(kernel, exports);
  return exports;
}

function numberOf(variable: WebAssembly.ExportValue | undefined): number {
  return variable instanceof WebAssembly.Global ? (variable.value as number) : 0;
}
