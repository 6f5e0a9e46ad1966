/** The Python worker's end of the line to the pool of light workers; Python calls it. */

import type { FromTrialPool, SharedReply, ToTrialPool } from "../python/messages";
import { dataOf } from "../python/primordials";
import type { TrialJob, TrialOutcome, TrialWorkload } from "../python/wire";
import { newAnswer, readAnswer } from "./shared_answer";

export class TrialLine {
  private last = 0;
  private readonly waiting = new Map<number, (outcome: TrialOutcome) => void>();
  /** Bytes of the buffers of each owner. */
  private readonly sizes = new Map<number, number>();
  private readonly asked = new Map<number, SharedReply>();
  private bell: SharedArrayBuffer | null = null;

  /** Held as a function: programs reach this object, and are not to send what they like. */
  readonly #send: (message: ToTrialPool) => void;

  constructor(port: MessagePort) {
    this.#send = port.postMessage.bind(port);
    port.onmessage = (event: MessageEvent<FromTrialPool>) => {
      const data = dataOf(event);
      this.waiting.get(data.id)?.(data.outcome);
      this.waiting.delete(data.id);
    };
  }

  open(owner: number, workload: TrialWorkload, workers: number, limitMs: number): void {
    this.sizes.set(
      owner,
      workload.arrays.reduce((sum, { input }) => sum + input.length, 0),
    );
    this.#send({ type: "open", owner, workload, workers, limitMs });
  }

  run(owner: number, job: TrialJob): Promise<TrialOutcome> {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.#send({ type: "run", owner, id, job });
    });
  }

  /** As `run`, for a Python that blocks this worker: its number, under which `collect` has it. */
  ask(owner: number, job: TrialJob): number {
    const id = ++this.last;
    this.bell ??= new SharedArrayBuffer(4);
    const reply = newAnswer(this.bell, this.sizes.get(owner) ?? 0, job.batches);
    this.asked.set(id, reply);
    this.#send({ type: "run", owner, id, job, reply });
    return id;
  }

  /** The outcomes that are there; where there is none, blocks until one is, but no longer than so. */
  collect(milliseconds: number): [id: number, outcome: TrialOutcome][] {
    const count = this.bell && new Int32Array(this.bell);
    const heard = count ? Atomics.load(count, 0) : 0;
    const answers = this.takeAnswered();
    if (answers.length || !count || milliseconds <= 0) return answers;
    Atomics.wait(count, 0, heard, milliseconds);
    return this.takeAnswered();
  }

  close(owner: number): void {
    this.sizes.delete(owner);
    this.#send({ type: "close", owner });
  }

  private takeAnswered(): [id: number, outcome: TrialOutcome][] {
    const answers: [id: number, outcome: TrialOutcome][] = [];
    for (const [id, reply] of this.asked) {
      const outcome = readAnswer(reply);
      if (!outcome) continue;
      this.asked.delete(id);
      answers.push([id, outcome]);
    }
    return answers;
  }
}
