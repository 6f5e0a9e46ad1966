/** The Python worker's end of the line to the pool of light workers; Python calls it. */

import type { FromTrialPool, ToTrialPool, TrialJob, TrialOutcome, Workload } from "./protocol";

export class TrialLine {
  private last = 0;
  private readonly waiting = new Map<number, (outcome: TrialOutcome) => void>();

  constructor(private readonly port: MessagePort) {
    port.onmessage = ({ data }: MessageEvent<FromTrialPool>) => {
      this.waiting.get(data.id)?.(data.outcome);
      this.waiting.delete(data.id);
    };
  }

  open(owner: number, workload: Workload, workers: number, limitMs: number): void {
    this.send({ type: "open", owner, workload, workers, limitMs });
  }

  run(owner: number, job: TrialJob): Promise<TrialOutcome> {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send({ type: "run", owner, id, job });
    });
  }

  close(owner: number): void {
    this.send({ type: "close", owner });
  }

  private send(message: ToTrialPool): void {
    this.port.postMessage(message);
  }
}
