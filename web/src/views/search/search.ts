/** A search as the page keeps it, from its start until the reader lets go of it. */

import { signal } from "@preact/signals-core";
import type { SearchSettings, SearchStart, TrialUpdate } from "../../python/wire";
import { counted } from "../format";
import type { StoredWorkload } from "./records";
import { outcome, place, type Trial } from "./trials";

export type SearchState = "running" | "paused" | "ended";

const STRATEGIES: Record<SearchSettings["strategy"], string> = {
  function: "own function",
  random: "random",
  evolutionary: "evolutionary",
  exhaustive: "exhaustive",
};

let created = 0;

export class Search {
  readonly number = ++created;
  /** Of the page's clock. */
  readonly since = performance.now();
  /** Where it is, as a sentence. */
  readonly said = signal("");
  readonly state = signal<SearchState>("running");
  /** Grows with everything that comes in. */
  readonly version = signal(0);
  /** Python's name of it; empty before it began, and after Python restarted. */
  id = "";
  baseline: number | null = null;
  operations = 0;
  workers = 0;
  /** How many records of earlier searches could not be read. */
  private unreadable = 0;
  readonly trials: Trial[] = [];
  /** How the page's storage knows the program; null until that is known. */
  workload: StoredWorkload | null = null;
  /** Names of the decisions of each design space: of each the names of its numbers. */
  readonly labels = new Map<number, string[][]>();
  /** Milliseconds that it has run; pauses do not count. */
  spent = 0;

  constructor(
    /** Whose names it searches over. */
    readonly document: string,
    readonly title: string,
    /** Null for a search that a program runs by itself. */
    readonly settings: SearchSettings | null,
    /** How many trials there will be, where that is known. */
    readonly planned: number | null,
    /** Whether the searched module is a model. */
    readonly model = false,
  ) {}

  get name(): string {
    const how = this.settings ? `, ${STRATEGIES[this.settings.strategy]}` : "";
    return `${this.number}: ${this.title}${how}`;
  }

  begin(id: string, start: SearchStart): void {
    const { baselineSeconds: baseline, workers, operations, unreadable, workload } = start;
    Object.assign(this, { id, baseline, workers, operations, unreadable, workload });
    this.version.value += 1;
  }

  /** It pauses, or has ended. */
  rest(state: SearchState, how: string): void {
    const lost = this.unreadable ? `; ${counted(this.unreadable, "record")} could not be read` : "";
    const came = this.trials.length ? `: ${outcome(this.tried, this.trials)}` : "";
    this.said.value = how + came + lost;
    this.state.value = state;
  }

  /** Take a trial in. */
  add(trial: TrialUpdate): void {
    if (trial.labels && trial.space !== null) this.labels.set(trial.space, trial.labels);
    place(this.trials, trial, this.spent / 1000);
    this.version.value += 1;
  }

  /** Whether the last rounds have begun, in which the best are measured again. */
  get confirming(): boolean {
    return this.trials.some(({ confirmed }) => confirmed);
  }

  /** How many trials it made: what it only took over from records is no part of its budget. */
  get tried(): number {
    if (this.settings?.strategy === "function") return this.trials.length;
    return this.trials.filter(({ state }) => state !== "recalled").length;
  }

  /**
   * Its figures, which agree with each other: the trials, the seconds from the first to the last of
   * them, their quotient, and the seconds in which the best were confirmed.
   */
  get figures(): { trials: number; seconds: number; rate: number | null; confirming: number } {
    const seconds = this.trials.reduce((last, { at }) => Math.max(last, at), 0);
    const rate = seconds > 0 ? this.tried / seconds : null;
    return { trials: this.tried, seconds, rate, confirming: this.spent / 1000 - seconds };
  }

  /** How far it has come, from 0 to 1; null where nobody knows. */
  get share(): number | null {
    if (this.state.value === "ended") return 1;
    const seconds = this.settings?.seconds;
    if (seconds) return Math.min(1, this.spent / 1000 / seconds);
    return this.planned ? Math.min(1, this.tried / this.planned) : null;
  }
}
