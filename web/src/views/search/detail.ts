/** The chosen trial: what it changes, step by step or at once, and what it is worth to a model. */

import { computed, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { element } from "../../dom";
import { Stopped } from "../../python/client";
import type { ModelTimes, TraceStep, TrialDetails } from "../../python/wire";
import { comparison, gflops, timing } from "../format";
import { button, once, reactive, setting } from "../kit";
import { Cache, Resource } from "../resource";
import { diffListing, markedLines } from "../trace/diff";
import { openTrace } from "../trace/open";
import { stepList } from "../trace/steps";
import type { ViewContext } from "../view";
import type { Search } from "./search";
import type { Trial } from "./trials";

type Way = "steps" | "diff";

const RESTARTED =
  "Python has been restarted since, so the details of this trial are lost. Its time and its decisions remain.";

interface Shown {
  search: Search;
  trial: Trial;
  details: TrialDetails;
  steps: TraceStep[];
}

export class TrialDetail {
  readonly root = element("section", { class: "trial-detail", "aria-label": "Chosen trial" });
  private readonly shown = new Resource<Shown>();
  private readonly way = signal<Way>("steps");
  private readonly step = signal(0);
  private readonly cache = new Cache<[TrialDetails, TraceStep[]]>();
  /** What whole models take with a trial's function, by trial. */
  private readonly modelTimes = new Map<string, Resource<ModelTimes>>();
  private readonly steps = stepList({
    id: "trial",
    steps: computed(() => this.shown.value?.steps ?? []),
    selected: this.step,
  });

  constructor(private readonly context: ViewContext) {
    reactive(
      this.root,
      () => this.template(),
      () => {
        this.root.hidden = this.shown.value === null && !this.shown.error;
      },
    );
  }

  hide(): void {
    this.shown.set(null);
  }

  /** Show a trial; what Python says of it is asked for once and cached. */
  async show(search: Search, index: number): Promise<void> {
    const trial = search.trials.find((each) => each.index === index)!;
    const key = keyOf(search, trial);
    const fetch = async (): Promise<Shown> => {
      if (!search.id && !this.cache.has(key)) throw new Stopped(RESTARTED);
      const [details, steps] = await this.cache.get(key, () => this.fetch(search.id, index));
      return { search, trial, details, steps };
    };
    await this.shown.load(fetch, ({ steps }) => {
      this.step.value = Math.max(0, steps.length - 1);
    });
  }

  /** Let go of what is cached of a search. */
  forget(search: Search): void {
    this.cache.clear(`${search.number} `);
  }

  private async fetch(id: string, index: number): Promise<[TrialDetails, TraceStep[]]> {
    const { session } = this.context;
    const details = await session.look(null, "search.details", id, index);
    return [details, await session.look(null, "trace_view.trace_steps", details.trace.id)];
  }

  private template(): TemplateResult | typeof nothing {
    const { shown } = this;
    if (shown.error) {
      const lost = shown.stopped || shown.error.includes("no search");
      return html`<p class="reason">${lost ? RESTARTED : shown.error}</p>`;
    }
    if (!shown.value) return nothing;
    const { search, trial, details } = shown.value;
    const { seconds, reason, index } = trial;
    const speed =
      seconds !== null && search.operations ? `, ${gflops(search.operations / seconds)}` : "";
    const time = seconds === null ? "" : `, ${timing(seconds)}${speed}`;
    const { code, replacing, trace } = details;
    const use = (text: string | null, testId: string, label: string, done: string) => {
      const append = (): void => {
        const { show, editor, toast } = this.context;
        show("editor");
        editor.append(text!);
        toast(done);
      };
      return button(label, append, { testId, hidden: text === null });
    };
    return html`<header class="card-head">
        <h2>Trial ${index}${time}</h2>
        <div class="actions">
          ${button("Open its trace", () => openTrace(trace), { testId: "search-open-trace" })}
          ${use(code, "search-use", "Use in editor", "The schedule was appended to the program")}
          ${use(
            replacing,
            "search-replace",
            "Replace in module",
            "Code that replaces the function was appended to the program",
          )}
        </div>
      </header>
      ${reason ? html`<p class="reason">${reason}</p>` : nothing}
      ${search.model && seconds !== null ? this.worth(search, trial) : nothing}
      ${this.body(details)}`;
  }

  /** The trial's steps, or its whole difference. */
  private body({ diff }: TrialDetails): TemplateResult {
    const radio = (way: Way, text: string): TemplateResult => html`<label class="check"
      data-testid="search-way-${way}"><input type="radio" name="trial-way" value=${way}
        id="trial-way-${way}" .checked=${way === this.way.value} @change=${setting(this.way, way)}>${text}</label>`;
    const whole = (): TemplateResult => html`<pre class="code" tabindex="0" role="group"
      aria-label="The trial's program against the unscheduled one"
      data-testid="search-diff">${once(diff, () => diffListing(markedLines(diff)))}</pre>`;
    return html`<fieldset class="ways"><legend class="visually-hidden">What to show</legend>
        ${radio("steps", "Step by step")}${radio("diff", "Compared with the original")}</fieldset>
      <div class="trial-body">${this.way.value === "steps" ? this.steps : whole()}</div>`;
  }

  /** What the trial is worth to the whole model, measured when the reader asks for it. */
  private worth(search: Search, trial: Trial): TemplateResult {
    const key = keyOf(search, trial);
    const times = this.modelTimes.get(key) ?? new Resource<ModelTimes>();
    this.modelTimes.set(key, times);
    const measure = (): void => {
      const { session, during } = this.context;
      const ask = () => session.call("search.compare", search.id, trial.index);
      void times.load(() => during("Timing the model", () => void session.stop(), ask));
    };
    const answer = times.state === "ready" ? times.value : null;
    const text = answer ? worthText(answer) : times.busy ? TIMING : times.error;
    return html`<div class="worth">
      ${button("Time the whole model", measure, {
        testId: "search-model-times",
        disabled: times.busy,
      })}
      <p class="model-times" data-testid="search-model-result" aria-live="polite"
        data-before=${answer ? answer.before * 1000 : nothing}
        data-after=${answer ? answer.after * 1000 : nothing}>${text}</p>
    </div>`;
  }
}

const TIMING = "Timing the model before and after …";

function worthText({ entry, before, after, inputs }: ModelTimes): string {
  const from = inputs.map(({ name, source }) =>
    source === "random" ? `${name} random` : `${name} from ${source}`,
  );
  return (
    `${entry}: ${timing(before)} before, ${timing(after)} with this function, ` +
    `${comparison(after, before)} end to end. Inputs: ${from.join(", ")}.`
  );
}

/** A confirmed time is in the code, too, so that it is asked for again. */
function keyOf(search: Search, { index, confirmed }: Trial): string {
  return `${search.number} ${index} ${confirmed ?? false}`;
}
