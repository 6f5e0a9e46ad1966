/** The chosen trial: what it changes, step by step or at once, and what it is worth to a model. */

import { element } from "../../dom";
import { type PythonSession, Stopped } from "../../python/client";
import type { TraceStep } from "../../python/protocol";
import type { ModelTimes, TrialDetails } from "../../python/search_protocol";
import { comparison, milliseconds, short } from "../format";
import { diffListing, markedLines } from "../trace/diff";
import { openTrace } from "../trace/open";
import { StepList } from "../trace/steps";
import type { Search } from "./search";

type Way = "steps" | "diff";

const GONE =
  "Python was restarted since; the details of this trial are gone. Its time and its decisions are not.";

interface DetailActions {
  /** Append code to the program. */
  use: (code: string, told: string) => void;
  /** Do something that takes Python's time; null where something else does. */
  during: <T>(what: string, work: () => Promise<T>) => Promise<T> | null;
}

export class TrialDetail {
  readonly root = element("section", {
    class: "trial-detail",
    hidden: true,
    "aria-label": "Chosen trial",
  });
  private readonly steps = new StepList();
  private readonly known = new Map<string, Promise<[TrialDetails, TraceStep[]]>>();
  private readonly times = new Map<string, ModelTimes>();
  private way: Way = "steps";
  private wanted = "";

  constructor(
    private readonly session: PythonSession,
    private readonly actions: DetailActions,
  ) {}

  hide(): void {
    this.wanted = "";
    this.root.hidden = true;
  }

  /** Show a trial; what Python tells of it is asked for once and kept. */
  async show(search: Search, index: number): Promise<void> {
    // A confirmed time stands in the code, too, so that it is asked for again.
    const confirmed = search.trials.find((trial) => trial.index === index)?.confirmed ?? false;
    const key = `${search.number} ${index} ${confirmed}`;
    this.wanted = key;
    try {
      if (!search.id && !this.known.has(key)) throw new Stopped(GONE);
      const found = this.known.get(key) ?? this.fetch(search.id, index);
      this.known.set(key, found);
      found.catch(() => this.known.delete(key));
      const [details, steps] = await found;
      if (this.wanted === key) this.fill(search, index, key, details, steps);
    } catch (error) {
      if (this.wanted !== key) return;
      const text =
        error instanceof Stopped || message(error).includes("no search") ? GONE : message(error);
      this.root.hidden = false;
      this.root.replaceChildren(element("p", { class: "reason" }, text));
    }
  }

  /** Let go of what is known of a search. */
  forget(search: Search): void {
    for (const key of this.known.keys())
      if (key.startsWith(`${search.number} `)) this.known.delete(key);
  }

  private async fetch(id: string, index: number): Promise<[TrialDetails, TraceStep[]]> {
    const details = await this.session.call("search.details", id, index);
    const steps = details.trace
      ? await this.session.call("trace_view.trace_steps", details.trace.id)
      : [];
    return [details, steps];
  }

  private fill(
    search: Search,
    index: number,
    key: string,
    details: TrialDetails,
    steps: TraceStep[],
  ): void {
    const trial = search.trials.find((each) => each.index === index);
    const { code, replacing } = details;
    const use = (text: string | null, id: string, label: string, told: string): HTMLElement => {
      const button = element(
        "button",
        { class: "button", type: "button", "data-testid": id, hidden: text === null },
        label,
      );
      button.addEventListener("click", () => this.actions.use(text!, told));
      return button;
    };
    const seconds = trial?.seconds ?? null;
    const speed =
      seconds !== null && search.operations
        ? `, ${short(search.operations / seconds / 1e9)} GFLOPS`
        : "";
    const time = seconds === null ? "" : `, ${milliseconds(seconds)} ms${speed}`;
    const open = element(
      "button",
      {
        class: "button",
        type: "button",
        "data-testid": "search-open-trace",
        hidden: !details.trace,
      },
      "Open its trace",
    );
    open.addEventListener("click", () => {
      if (details.trace) openTrace(details.trace);
    });
    const body = element("div", { class: "trial-body" });
    const ways = this.ways((way) => {
      this.way = way;
      body.replaceChildren(way === "steps" ? this.steps.root : wholeDiff(details.diff));
    });
    this.root.hidden = false;
    this.root.replaceChildren(
      element(
        "header",
        { class: "card-head" },
        element("h2", {}, `Trial ${index}${time}`),
        element(
          "div",
          { class: "actions" },
          open,
          use(code, "search-use", "Use in editor", "The schedule was appended to the program"),
          use(
            replacing,
            "search-replace",
            "Replace in module",
            "Code that replaces the function was appended to the program",
          ),
        ),
      ),
      trial?.reason ? element("p", { class: "reason" }, trial.reason) : "",
      search.model && seconds !== null ? this.worth(search, index, key) : "",
      details.trace ? ways : "",
      details.trace ? body : "",
    );
    if (!details.trace) return;
    this.steps.show(details.trace, steps);
    body.replaceChildren(this.way === "steps" ? this.steps.root : wholeDiff(details.diff));
  }

  /** A choice between the trial's steps and its whole difference. */
  private ways(onChange: (way: Way) => void): HTMLElement {
    const radios = (
      [
        ["steps", "Step by step"],
        ["diff", "Against the start"],
      ] as [Way, string][]
    ).map(([way, text]) => {
      const radio = element("input", {
        type: "radio",
        name: "trial-way",
        value: way,
        id: `trial-way-${way}`,
      });
      radio.checked = way === this.way;
      radio.addEventListener("change", () => onChange(way));
      return element("label", { class: "way", "data-testid": `search-way-${way}` }, radio, text);
    });
    return element(
      "fieldset",
      { class: "ways" },
      element("legend", { class: "visually-hidden" }, "What to show"),
      ...radios,
    );
  }

  /** What the trial is worth to the whole model, measured when the reader asks for it. */
  private worth(search: Search, index: number, key: string): HTMLElement {
    const button = element(
      "button",
      { class: "button", type: "button", "data-testid": "search-model-times" },
      "Time the whole model",
    );
    const result = element("p", {
      class: "model-times",
      "data-testid": "search-model-result",
      "aria-live": "polite",
    });
    const show = (times: ModelTimes): void => {
      const inputs = times.inputs.map(
        ({ name, from }) => `${name} ${from === "random" ? "random" : `from ${from}`}`,
      );
      result.dataset.before = String(times.before * 1000);
      result.dataset.after = String(times.after * 1000);
      result.textContent =
        `${times.entry}: ${milliseconds(times.before)} ms before, ${milliseconds(times.after)} ms with this function, ` +
        `${comparison(times.after, times.before)} end to end. Inputs: ${inputs.join(", ")}.`;
    };
    const known = this.times.get(key);
    if (known) show(known);
    button.addEventListener("click", () => {
      const work = this.actions.during("Timing the model", () =>
        this.session.call("search.compare", search.id, index),
      );
      if (!work) return;
      button.disabled = true;
      result.textContent = "Timing the model before and after …";
      work
        .then((times) => {
          this.times.set(key, times);
          show(times);
        })
        .catch((error: unknown) => {
          result.textContent = message(error);
        })
        .finally(() => {
          button.disabled = false;
        });
    });
    return element("div", { class: "worth" }, button, result);
  }
}

function wholeDiff(diff: string): HTMLElement {
  const label = "The trial's program against the one before any step";
  return element(
    "pre",
    {
      class: "code",
      tabindex: 0,
      role: "group",
      "aria-label": label,
      "data-testid": "search-diff",
    },
    diffListing(markedLines(diff)),
  );
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
