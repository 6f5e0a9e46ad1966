/** The settings of a search. */

import { computed, signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import type { SearchModule, SearchSettings, Strategy } from "../../python/wire";
import { button, type Choice, choice, fieldValue } from "../kit";

/** Workers by default, at most; more share caches, and disturb each other's times. */
const MAX_WORKERS = 4;

const MAX_SECONDS = 3600;

/** Least and greatest value of each field of a number. */
const BOUNDS = { amount: [1, 100_000], seed: [0, 2 ** 31], workers: [1, 16] } as const;

const STRATEGIES: [Strategy, string][] = [
  ["function", "Random, my schedule function"],
  ["evolutionary", "Evolutionary, default space"],
  ["random", "Random, default space"],
  ["exhaustive", "Exhaustive, default space"],
];

/** What can be pressed: a search that runs, anything that runs, a search that pauses. */
export interface FormState {
  running: boolean;
  busy: boolean;
  paused: boolean;
}

interface FormActions {
  start: () => void;
  pause: () => void;
  stop: () => void;
}

/** What the reader has set, as it was written; a choice counts where it is on offer. */
interface Fields {
  module: string;
  function: string;
  strategy: Strategy | null;
  scheduleFunction: string;
  unit: "trials" | "seconds";
  amount: string;
  seed: string;
  workers: string;
}

export class SearchForm {
  private readonly modules = signal<SearchModule[]>([]);
  private readonly functions = signal<string[]>([]);
  private readonly fields = signal<Fields>({
    module: "",
    function: "",
    strategy: null,
    scheduleFunction: "",
    unit: "trials",
    amount: "10",
    seed: "0",
    workers: String(Math.min(navigator.hardwareConcurrency || 1, MAX_WORKERS)),
  });
  private touched = false;
  /** Settings of a link, until the program that they are for has run. */
  private linked: Partial<SearchSettings> | null = null;
  private readonly module = computed(() => {
    const { module } = this.fields.value;
    return this.modules.value.find(({ name }) => name === module) ?? this.modules.value[0];
  });
  /** The choices that count: the reader's where they are on offer, else the first. */
  private readonly chosen = computed(() => {
    const { function: name, scheduleFunction, strategy } = this.fields.value;
    const own = this.functions.value;
    const names = this.module.value?.functions ?? [];
    const offered = STRATEGIES.filter(([id]) => id !== "function" || own.length);
    return {
      function: names.includes(name) ? name : (names[0] ?? ""),
      scheduleFunction: own.includes(scheduleFunction)
        ? scheduleFunction
        : (own.find((each) => each.includes("stochastic")) ?? own[0] ?? ""),
      strategy: (offered.find(([id]) => id === strategy) ?? offered[0]!)[0],
    };
  });

  constructor(private readonly actions: FormActions) {}

  /** Whether there is anything to search. */
  get hasModules(): boolean {
    return this.modules.value.length > 0;
  }

  /** The chosen module is a model with a graph function. */
  get isModel(): boolean {
    return this.module.value?.model ?? false;
  }

  /** The settings, with numbers brought into their bounds; the fields show what is meant. */
  settings(): Omit<SearchSettings, "document"> {
    const amount = this.whole("amount");
    const { function: name, scheduleFunction, strategy } = this.chosen.value;
    const bySeconds = this.fields.value.unit === "seconds";
    return {
      module: this.module.value?.name ?? "",
      function: name || null,
      strategy,
      scheduleFunction: strategy === "function" ? scheduleFunction : null,
      seed: this.whole("seed"),
      trials: bySeconds ? null : amount,
      seconds: bySeconds ? Math.min(amount, MAX_SECONDS) : null,
      workers: this.whole("workers"),
    };
  }

  /** The settings, if the reader or a link has made any. */
  state(): Partial<SearchSettings> | null {
    return this.linked ?? (this.touched ? this.settings() : null);
  }

  /** Set what `state` told; of choices those that the program has when it has run. */
  restore(state: unknown): void {
    if (typeof state !== "object" || state === null) return;
    this.linked = state;
    const { trials, seconds } = this.linked;
    const amount = trials ?? seconds;
    const budget = amount ? { amount, unit: trials ? "trials" : "seconds" } : {};
    const old = this.fields.value;
    const linked = Object.entries({ ...this.linked, ...budget })
      .filter(([name, value]) => name in old && ["string", "number"].includes(typeof value))
      .map(([name, value]) => [name, String(value)]);
    this.fields.value = { ...old, ...Object.fromEntries(linked) };
    for (const name of ["amount", "seed", "workers"] as const) this.whole(name);
    if (this.hasModules) this.settle();
  }

  /** Offer what a program has left behind. */
  offer(functions: string[], modules: SearchModule[]): void {
    if (functions.length || modules.length) this.functions.value = functions;
    if (!modules.length) return;
    this.modules.value = modules;
    if (this.linked) this.settle();
  }

  /** Nothing is known any more. */
  forget(): void {
    this.modules.value = [];
    this.functions.value = [];
  }

  template({ running, busy, paused }: FormState): TemplateResult {
    const { function: name, scheduleFunction, strategy } = this.chosen.value;
    const { actions } = this;
    const functions = this.module.value?.functions ?? [];
    const own = this.functions.value;
    const ready = !busy && this.hasModules;
    const submit = (event: Event): void => {
      event.preventDefault();
      if (ready) actions.start();
    };
    const select = (
      [label, id, field]: [label: string, id: string, field: keyof Fields],
      options: Choice["options"],
      value: string,
      disabled = false,
    ): TemplateResult => {
      const onChange = (next: string): void => this.set({ [field]: next });
      return choice({ label, id, options, value, hidden: false, disabled, onChange });
    };
    const number = (label: string, id: string, field: keyof typeof BOUNDS): TemplateResult => html`
      <label class="field" for=${id}>${label}<input id=${id} data-testid=${id} type="number"
        inputmode="numeric" min=${BOUNDS[field][0]} max=${BOUNDS[field][1]}
        .value=${live(this.fields.value[field])}
        @input=${(event: Event) => this.set({ [field]: fieldValue(event) })}></label>`;
    const strategies = STRATEGIES.map(([id, title]) => ({
      id,
      title,
      disabled: id === "function" && !own.length,
    }));
    return html`<form class="search-form" aria-label="Search settings" @submit=${submit}>
      ${select(
        ["Module", "search-module", "module"],
        this.modules.value.map((each) => each.name),
        this.module.value?.name ?? "",
      )}
      ${select(["Function", "search-primfunc", "function"], functions, name, functions.length < 2)}
      ${select(["Strategy", "search-strategy", "strategy"], strategies, strategy)}
      ${select(
        ["Schedule function", "search-function", "scheduleFunction"],
        own,
        scheduleFunction,
        strategy !== "function",
      )}
      <div class="budget">${number("Budget", "search-trials", "amount")}
        ${select(["In", "search-unit", "unit"], ["trials", "seconds"], this.fields.value.unit)}</div>
      ${number("Seed", "search-seed", "seed")}${number("Workers", "search-workers", "workers")}
      <div class="actions">
        <button class="button primary" type="submit" data-testid="search-start"
          aria-disabled=${!ready}>Start</button>
        ${button(paused ? "Resume" : "Pause", actions.pause, {
          testId: "search-pause",
          disabled: paused ? busy : !running,
        })}
        ${button("Stop", actions.stop, { testId: "search-stop", disabled: !running && !paused })}
      </div>
    </form>`;
  }

  private set(changed: Partial<Fields>): void {
    this.settle();
    this.fields.value = { ...this.fields.value, ...changed };
  }

  /** The settings are the reader's own from here on. */
  private settle(): void {
    this.touched = true;
    this.linked = null;
  }

  /** The whole number of a field, brought into its bounds. */
  private whole(field: keyof typeof BOUNDS): number {
    const [least, greatest] = BOUNDS[field];
    const value = Math.round(Number(this.fields.value[field])) || least;
    const bounded = Math.min(greatest, Math.max(least, value));
    this.fields.value = { ...this.fields.value, [field]: String(bounded) };
    return bounded;
  }
}
