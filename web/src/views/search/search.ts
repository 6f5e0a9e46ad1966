/** A search as the page keeps it, from its start until the reader lets go of it. */

import { signal } from "@preact/signals-core";
import type { SearchSettings, SearchStart, TrialUpdate } from "../../python/wire";
import { counted } from "../format";
import type { StoredWorkload } from "./records";
import { outcome, place, type ShownTrial } from "./trials";

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
  /** Where it is, as a sentence. */
  readonly said = signal("");
  /** Grows with everything that comes in. */
  readonly version = signal(0);
  /** Python's name of it; empty before it began, and after Python restarted. */
  id = "";
  baseline: number | null = null;
  operations = 0;
  workers = 0;
  /** How many records of earlier searches could not be read. */
  private unreadable = 0;
  readonly trials: ShownTrial[] = [];
  /** How the page's storage knows the program; null until that is known. */
  workload: StoredWorkload | null = null;
  /** Whether the last rounds have begun, in which the best are measured again. */
  confirming = false;
  /** Names of the decisions of each design space: of each the names of its numbers. */
  readonly labels = new Map<number, string[][]>();
  /** Milliseconds that it has run; pauses do not count. */
  spent = 0;
  /** Up to the last trial that was no confirmation, in milliseconds. */
  private sampled = 0;
  private readonly now = signal<SearchState>("running");

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

  get state(): SearchState {
    return this.now.value;
  }

  set state(state: SearchState) {
    this.now.value = state;
  }

  get name(): string {
    const how = this.settings ? `, ${STRATEGIES[this.settings.strategy]}` : "";
    return `${this.number}: ${this.title}${how}`;
  }

  begin({ id, baselineSeconds, workers, operations, unreadable }: SearchStart): void {
    Object.assign(this, { id, baseline: baselineSeconds, workers, operations, unreadable });
    this.version.value += 1;
  }

  /** It pauses, or has ended. */
  rest(state: SearchState, how: string): void {
    const lost = this.unreadable ? `; ${counted(this.unreadable, "record")} could not be read` : "";
    const came = this.trials.length ? `: ${outcome(this.tried, this.trials)}` : "";
    this.said.value = how + came + lost;
    this.state = state;
  }

  /** Take a trial in. */
  add(trial: TrialUpdate): void {
    if (trial.labels && trial.space !== null) this.labels.set(trial.space, trial.labels);
    if (trial.confirmed) this.confirming = true;
    else this.sampled = this.spent;
    place(this.trials, trial, this.spent / 1000);
    this.version.value += 1;
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
    const seconds = this.sampled / 1000;
    const rate = seconds > 0 ? this.tried / seconds : null;
    return { trials: this.tried, seconds, rate, confirming: (this.spent - this.sampled) / 1000 };
  }

  /** How far it has come, from 0 to 1; null where nobody knows. */
  get share(): number | null {
    if (this.state === "ended") return 1;
    const seconds = this.settings?.seconds;
    if (seconds) return Math.min(1, this.spent / 1000 / seconds);
    return this.planned ? Math.min(1, this.tried / this.planned) : null;
  }
}
