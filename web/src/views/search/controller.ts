/** Controls a search: begins it, asks Python for trial after trial, pauses, stops, and keeps records. */

import { type PythonSession, Stopped } from "../../python/client";
import type { SearchSettings } from "../../python/wire";
import { earlier, type RecordStore, type RecordWriter } from "./records";
import type { Search } from "./search";
import { outcome } from "./trials";

/** Milliseconds that a stopped search waits for its last trial before Python is stopped. */
const PATIENCE = 4000;

interface ControllerEvents {
  /** A sentence for the reader about where the search is. */
  say: (text: string) => void;
  /** A trial came in; drawing can wait. */
  onTrial: (search: Search) => void;
  /** The search runs, pauses or has ended. */
  onState: (search: Search) => void;
}

export class SearchController {
  /** The search that runs or pauses, or did last. */
  current: Search | null = null;
  private leaving: "pause" | "stop" | null = null;
  private running = false;

  constructor(
    private readonly session: PythonSession,
    private readonly store: Promise<RecordStore>,
    private readonly writer: RecordWriter,
    private readonly events: ControllerEvents,
  ) {}

  get isRunning(): boolean {
    return this.running;
  }

  get isPaused(): boolean {
    return this.current?.state === "paused";
  }

  /** Search from the beginning. `reuse`: go on from records of earlier searches. */
  async start(search: Search, settings: SearchSettings, reuse: boolean): Promise<void> {
    if (this.current?.state === "paused") this.end(this.current);
    this.current = search;
    this.events.say(`Timing ${search.title} unscheduled …`);
    await this.steer(search, async () => {
      search.workload = await this.session.call(
        "search.workload",
        settings.document,
        settings.module,
        settings.function,
      );
      const earlierRecords = reuse
        ? earlier(await (await this.store).ofWorkload(search.workload.key))
        : null;
      search.begin(await this.session.call("search.begin", settings, earlierRecords));
      const count = earlierRecords?.programs.length ?? 0;
      this.events.say(
        `${search.title}: sampling${count ? `, ${count} programs measured in earlier searches` : ""}`,
      );
    });
  }

  /** Go on with the search that pauses. */
  async resume(): Promise<void> {
    const search = this.current;
    if (search?.state !== "paused") return;
    this.events.say(`${search.title}: sampling`);
    await this.steer(search, async () => undefined);
  }

  /** Leave off after the trial that is waited for. */
  pause(): void {
    if (!this.running || this.leaving) return;
    this.leaving = "pause";
    this.events.say("Pausing …");
  }

  /** End the search; once more, end Python. */
  stop(): void {
    const search = this.current;
    if (!this.running) {
      if (search?.state === "paused") void this.finish(search);
      return;
    }
    if (this.leaving === "stop") {
      void this.session.stop();
      return;
    }
    this.leaving = "stop";
    this.events.say("Stopping …");
    this.session.trials.stop();
    setTimeout(() => {
      if (this.current === search && this.running) void this.session.stop();
    }, PATIENCE);
  }

  /** Python was started anew: what it controlled has ended. */
  onRestart(): void {
    if (this.current && this.current.state !== "ended" && !this.running) this.end(this.current);
  }

  private async steer(search: Search, begin: () => Promise<void>): Promise<void> {
    this.running = true;
    this.leaving = null;
    search.state = "running";
    this.events.onState(search);
    try {
      await begin();
      await this.follow(search);
      if (this.leaving === "pause") {
        search.state = "paused";
        this.events.say(`Paused: ${outcome(search.tried, search.trials)}`);
      } else await this.finish(search);
    } catch (error) {
      const stopped = error instanceof Stopped || this.leaving === "stop";
      const reason = stopped
        ? "Stopped"
        : `Failed: ${error instanceof Error ? error.message : String(error)}`;
      this.events.say(
        `${reason}. ${search.trials.length ? outcome(search.tried, search.trials) : ""}`,
      );
      this.end(search);
    } finally {
      this.running = false;
      await this.writer.flush();
      this.events.onState(search);
    }
  }

  private async follow(search: Search): Promise<void> {
    while (!this.leaving) {
      const asked = performance.now();
      const trial = await this.session.call("search.step", search.id);
      search.spent += performance.now() - asked;
      if (!trial) return;
      if (trial.record && search.workload) this.writer.add(search.workload, trial.record);
      const before = search.confirming;
      search.add(trial);
      if (trial.confirmed && !before)
        this.events.say(`${search.title}: measuring the best again, in turn`);
      this.events.onTrial(search);
    }
  }

  private async finish(search: Search): Promise<void> {
    this.events.say(
      `${this.leaving === "stop" || !this.running ? "Stopped" : "Done"}: ${outcome(search.tried, search.trials)}`,
    );
    this.end(search);
    this.events.onState(search);
  }

  private end(search: Search): void {
    search.state = "ended";
    if (search.id && this.session.state === "ready") {
      this.session.call("search.finish", search.id).catch(() => undefined);
    }
  }
}
