/** The settings of a search. */

import { element } from "../../dom";
import type { SearchModule, SearchSettings, Strategy } from "../../python/search_protocol";

/** So many workers by default at most; more share caches, and disturb each other's times. */
const MAX_WORKERS = 4;

const MAX_TRIALS = 100_000;
const MAX_SECONDS = 3600;

const STRATEGIES: [Strategy, string][] = [
  ["function", "Random, my schedule function"],
  ["evolutionary", "Evolutionary, default space"],
  ["random", "Random, default space"],
  ["exhaustive", "Exhaustive, default space"],
];

export interface FormActions {
  start: () => void;
  pause: () => void;
  stop: () => void;
}

export class SearchForm {
  readonly root: HTMLFormElement;
  private readonly module = element("select", { id: "search-module" });
  private readonly func = element("select", {
    id: "search-primfunc",
    "data-testid": "search-primfunc",
  });
  private readonly strategy = element("select", {
    id: "search-strategy",
    "data-testid": "search-strategy",
  });
  private readonly scheduler = element("select", { id: "search-function" });
  private readonly amount = numberField("search-trials", 1, MAX_TRIALS, 10);
  private readonly unit = element("select", {
    id: "search-unit",
    "data-testid": "search-unit",
    "aria-label": "Unit of the budget",
  });
  private readonly seed = numberField("search-seed", 0, 2 ** 31, 0);
  private readonly workers = numberField(
    "search-workers",
    1,
    16,
    Math.min(navigator.hardwareConcurrency || 1, MAX_WORKERS),
  );
  private readonly startButton = actionButton("search-start", "Start", "submit", "button primary");
  private readonly pauseButton = actionButton("search-pause", "Pause");
  private readonly stopButton = actionButton("search-stop", "Stop");
  private modules: SearchModule[] = [];
  private busy = false;
  /** Whether the reader has set anything. */
  private touched = false;
  /** Settings of a link, until the program that they are for has run. */
  private wanted: Partial<SearchSettings> | null = null;

  constructor(actions: FormActions) {
    this.unit.append(
      element("option", { value: "trials" }, "trials"),
      element("option", { value: "seconds" }, "seconds"),
    );
    this.strategy.append(...STRATEGIES.map(([value, text]) => element("option", { value }, text)));
    this.root = element(
      "form",
      { class: "search-form", "aria-label": "Search settings" },
      field("Module", this.module),
      field("Function", this.func),
      field("Strategy", this.strategy),
      field("Schedule function", this.scheduler),
      element(
        "div",
        { class: "field budget" },
        element("label", { for: "search-trials" }, "Budget"),
        element("div", { class: "budget-parts" }, this.amount, this.unit),
      ),
      field("Seed", this.seed),
      field("Workers", this.workers),
      element("div", { class: "actions" }, this.startButton, this.pauseButton, this.stopButton),
    );
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.startButton.disabled) actions.start();
    });
    this.pauseButton.addEventListener("click", actions.pause);
    this.stopButton.addEventListener("click", actions.stop);
    this.root.addEventListener("input", () => {
      this.touched = true;
      this.wanted = null;
    });
    this.module.addEventListener("change", () => this.offerFunctions());
    this.strategy.addEventListener("change", () => this.update());
    this.update();
  }

  /** Whether there is anything to search. */
  get known(): boolean {
    return this.modules.length > 0;
  }

  /** The chosen module is a model with a graph function. */
  get isModel(): boolean {
    return this.chosen?.model ?? false;
  }

  settings(): SearchSettings {
    const amount = whole(this.amount);
    const own = this.strategy.value === "function";
    const bySeconds = this.unit.value === "seconds";
    return {
      module: this.module.value,
      function: this.func.value || null,
      strategy: this.strategy.value as Strategy,
      scheduleFunction: own ? this.scheduler.value : null,
      seed: whole(this.seed),
      trials: bySeconds ? null : amount,
      seconds: bySeconds ? Math.min(amount, MAX_SECONDS) : null,
      workers: whole(this.workers),
    };
  }

  /** The settings, if the reader has made any. */
  state(): Partial<SearchSettings> | null {
    return this.wanted ?? (this.touched ? this.settings() : null);
  }

  /** Set what `state` told, as far as the program has it; the rest when it has run. */
  restore(state: unknown): void {
    if (typeof state !== "object" || state === null) return;
    this.wanted = state;
    this.applyWanted();
  }

  /** Offer what a program has left behind. */
  offer(functions: string[], modules: SearchModule[]): void {
    if (modules.length) {
      this.modules = modules;
      refill(
        this.module,
        modules.map(({ name }) => name),
      );
      this.offerFunctions();
    }
    if (functions.length || modules.length) {
      const had = this.scheduler.options.length > 0;
      refill(this.scheduler, functions, "stochastic");
      if (functions.length && !had) this.strategy.value = "function";
    }
    this.update();
    this.applyWanted();
  }

  /** Nothing is known any more. */
  forget(): void {
    this.modules = [];
    for (const select of [this.module, this.func, this.scheduler]) select.replaceChildren();
    this.update();
  }

  /** Say what can be pressed: `running` a search, `busy` with anything, a search that is `paused`. */
  show({ running, busy, paused }: { running: boolean; busy: boolean; paused: boolean }): void {
    this.busy = busy;
    this.pauseButton.textContent = paused ? "Resume" : "Pause";
    this.pauseButton.disabled = paused ? busy : !running;
    this.stopButton.disabled = !running && !paused;
    this.update();
  }

  private applyWanted(): void {
    const { wanted } = this;
    if (!wanted) return;
    const amount = wanted.trials ?? wanted.seconds;
    if (typeof amount === "number") {
      this.amount.value = String(amount);
      this.unit.value = wanted.trials ? "trials" : "seconds";
      whole(this.amount);
    }
    for (const [input, value] of [
      [this.seed, wanted.seed],
      [this.workers, wanted.workers],
    ] as const) {
      if (typeof value !== "number") continue;
      input.value = String(value);
      whole(input);
    }
    choose(this.module, wanted.module);
    this.offerFunctions();
    choose(this.func, wanted.function);
    choose(this.scheduler, wanted.scheduleFunction);
    choose(this.strategy, wanted.strategy);
    this.update();
    if (!this.known) return;
    this.wanted = null;
    this.touched = true;
  }

  private get chosen(): SearchModule | undefined {
    return this.modules.find(({ name }) => name === this.module.value);
  }

  private offerFunctions(): void {
    refill(this.func, this.chosen?.functions ?? []);
    this.func.disabled = this.func.options.length < 2;
  }

  private update(): void {
    const own = this.strategy.options[0]!;
    own.disabled = this.scheduler.options.length === 0;
    if (own.disabled && this.strategy.value === "function") this.strategy.value = "evolutionary";
    this.scheduler.disabled = this.strategy.value !== "function";
    this.func.disabled = this.func.options.length < 2;
    this.startButton.disabled = this.busy || !this.known;
  }
}

function actionButton(
  id: string,
  text: string,
  type = "button",
  kind = "button",
): HTMLButtonElement {
  return element("button", { class: kind, "data-testid": id, type, disabled: true }, text);
}

function numberField(id: string, min: number, max: number, value: number): HTMLInputElement {
  return element("input", {
    id,
    "data-testid": id,
    type: "number",
    min,
    max,
    value,
    inputmode: "numeric",
  });
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element("label", { class: "field", for: control.id }, label, control);
}

/** The whole number that a field holds, brought into its bounds; the field shows what is meant. */
function whole(input: HTMLInputElement): number {
  const [least, most] = [Number(input.min), Number(input.max)];
  const value = Math.min(most, Math.max(least, Math.round(input.valueAsNumber) || least));
  input.value = String(value);
  return value;
}

/** Choose an option, if there is one of this value that can be chosen. */
function choose(select: HTMLSelectElement, value: unknown): void {
  const option = [...select.options].find((each) => each.value === value && !each.disabled);
  if (option) select.value = option.value;
}

/** New options, keeping the choice where it is still there; else the first that has `preferred`. */
function refill(select: HTMLSelectElement, names: string[], preferred = ""): void {
  const old = select.value;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(old)
    ? old
    : (names.find((name) => name.includes(preferred)) ?? names[0] ?? "");
}
