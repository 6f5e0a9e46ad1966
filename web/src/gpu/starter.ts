/** The end of the page: starts the worker that has the GPU when it is first asked for something. */

import type { GpuQuestion, GpuStart } from "./messages";

/** What is needed of a `Worker`. */
export interface GpuWorker {
  postMessage(message: GpuStart, transfer: Transferable[]): void;
  terminate(): void;
}

export class GpuStarter {
  /** For Python's worker. */
  readonly port: MessagePort;
  private worker: GpuWorker | null = null;

  constructor(spawn: () => GpuWorker) {
    const { port1, port2 } = new MessageChannel();
    this.port = port2;
    port1.onmessage = ({ data: first }: MessageEvent<GpuQuestion>) => {
      port1.onmessage = null;
      this.worker = spawn();
      // Who asks first waits for the answer: nothing else is on its way.
      this.worker.postMessage({ port: port1, first }, [port1]);
    };
  }

  end(): void {
    this.worker?.terminate();
  }
}
