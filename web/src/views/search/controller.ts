/** Controls a search: begins it, asks Python for trial after trial, pauses, stops, and keeps records. */

import { signal } from "@preact/signals-core";
import { message } from "../../errors";
import { type PythonSession, Stopped } from "../../python/client";
import type { SearchNews, SearchSettings } from "../../python/wire";
import { counted } from "../format";
import { earlier, type RecordStore, type RecordWriter } from "./records";
import type { Search } from "./search";

export class SearchController {
  /** The search that runs or pauses, or did last. */
  current: Search | null = null;
  readonly running = signal(false);
  private leaving: "pause" | "stop" | null = null;

  constructor(
    private readonly session: PythonSession,
    private readonly store: RecordStore,
    private readonly writer: RecordWriter,
  ) {}

  get isPaused(): boolean {
    return !this.running.value && this.current?.state.value === "paused";
  }

  /** Search from the beginning. `reuse`: go on from records of earlier searches. */
  async start(search: Search, settings: SearchSettings, reuse: boolean): Promise<void> {
    if (this.current?.state.value === "paused") this.end(this.current);
    this.current = search;
    const { document, module, function: name } = settings;
    await this.steer(search, `Timing ${search.title} unscheduled …`, async () => {
      const { key } = await this.session.call("search.workload", document, module, name);
      const records = reuse ? earlier(await this.store.ofWorkload(key)) : null;
      this.take(search, await this.session.call("search.begin", settings, records));
      const count = records?.programs.length;
      const earlierCount = count
        ? `, ${counted(count, "program")} measured in earlier searches`
        : "";
      search.said.value = `${search.title}: sampling${earlierCount}`;
    });
  }

  /** Go on with the search that pauses. */
  async resume(): Promise<void> {
    const search = this.current;
    if (search?.state.value === "paused") await this.steer(search, `${search.title}: sampling`);
  }

  /** Leave off after the trial that is waited for. */
  pause(): void {
    if (!this.running.value || this.leaving) return;
    this.leaving = "pause";
    this.current!.said.value = "Pausing …";
  }

  /** End the search; once more, end Python. */
  stop(): void {
    const search = this.current;
    if (!this.running.value) {
      if (search?.state.value === "paused") this.end(search, "Stopped");
      return;
    }
    if (this.leaving === "stop") {
      void this.session.stop();
      return;
    }
    this.leaving = "stop";
    search!.said.value = "Stopping …";
    this.session.stopTrials(() => this.current !== search || !this.running.value);
  }

  /** Python was started anew: what it controlled has ended. */
  onRestart(): void {
    if (this.current?.state.value === "paused") this.end(this.current);
  }

  /** There is news of a search, of this one's or of one that a program runs. */
  take(search: Search, { id, start, trials }: SearchNews): void {
    if (start) search.begin(id, start);
    for (const trial of trials) {
      if (trial.record && search.workload) this.writer.add(search.workload, trial.record);
      search.add(trial);
    }
  }

  private async steer(search: Search, said: string, begin?: () => Promise<void>): Promise<void> {
    this.running.value = true;
    this.leaving = null;
    search.state.value = "running";
    search.said.value = said;
    try {
      await begin?.();
      await this.follow(search);
      // What came meanwhile is not seen by the compiler.
      const leaving = this.leaving as "pause" | "stop" | null;
      if (leaving === "pause") search.rest("paused", "Paused");
      else this.end(search, leaving === "stop" ? "Stopped" : "Done");
    } catch (error) {
      const stopped = error instanceof Stopped || (this.leaving as string | null) === "stop";
      this.end(search, stopped ? "Stopped" : `Failed: ${message(error)}`);
    } finally {
      this.running.value = false;
      await this.writer.flush();
    }
  }

  private async follow(search: Search): Promise<void> {
    while (!this.leaving) {
      const asked = performance.now();
      const news = await this.session.call("search.step", search.id);
      search.spent += performance.now() - asked;
      const confirming = search.confirming;
      this.take(search, news);
      if (news.over) return;
      if (search.confirming && !confirming)
        search.said.value = `${search.title}: measuring the best again, in turn`;
    }
  }

  private end(search: Search, how = "Ended"): void {
    search.rest("ended", how);
    if (search.id && this.session.state === "ready")
      this.session.call("search.finish", search.id).catch(() => undefined);
  }
}
