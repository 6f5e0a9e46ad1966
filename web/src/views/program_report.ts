/** A view of a program, perhaps beside another one: what the reader chooses, and Python's report. */

import { signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import type { GpuReport, RunResult } from "../python/wire";
import {
  button,
  choice,
  emptyNote,
  type Option,
  Pending,
  reactive,
  viewPanel,
  waitingNote,
} from "./kit";
import { Resource } from "./resource";
import type { View, ViewContext } from "./view";
import "./program_report.css";

/** What is compared with where nothing is. */
const NONE = "none";

/** What the reader has chosen; null where Python is to choose. */
interface Asked {
  program: string;
  function: string | null;
  other: string | null;
}

/** What every report has; `other` and `steps` where the program is compared with another one. */
type Report = Pick<GpuReport, "functions" | "function"> & Partial<GpuReport>;

interface Questions<R> {
  /** Shown while Python works on it. */
  what: string;
  /** `other`: a program or a step of the schedule, "" for Python's choice, null for none. */
  explain: (
    signal: AbortSignal,
    program: string,
    name: string | null,
    other: string | null,
  ) => Promise<R>;
  /** An answer has come; what it sets is drawn with it. */
  take: (answer: R) => void;
  /** The answer is shown, and no other is asked for. */
  loaded?: () => void;
}

export class ProgramReport<R extends Report> {
  readonly panel: HTMLElement;
  readonly programs = signal<RunResult["programs"]>([]);
  readonly asked = signal<Asked>({ program: "", function: null, other: null });
  readonly report = new Resource<R>();
  private readonly pending: Pending;

  constructor(
    private readonly id: string,
    private readonly title: string,
    private readonly context: ViewContext,
    private readonly questions: Questions<R>,
  ) {
    this.panel = viewPanel(id, title);
    this.pending = new Pending(this.panel, () => void this.load());
  }

  /** Ask anew, with something else chosen. */
  ask(change: Partial<Asked> = {}): void {
    this.asked.value = { ...this.asked.value, ...change };
    this.pending.ask();
  }

  private async load(): Promise<void> {
    const { session, looking } = this.context;
    const { what, explain, take, loaded } = this.questions;
    const { program, function: name, other } = this.asked.value;
    const compared = other === null ? "" : other === NONE ? null : other;
    const isShown = await this.report.load(
      (signal) =>
        looking(
          what,
          () => void session.stop(),
          () => explain(signal, program, name, compared),
        ),
      (answer) => {
        this.asked.value = { program, function: answer.function, other: answer.other ?? NONE };
        take(answer);
      },
    );
    if (isShown) loaded?.();
  }

  /** What can be chosen: the program, its function, what it is compared with, and more. */
  settings(others: readonly Option[], alwaysCompares: boolean, more: unknown): TemplateResult {
    const { program, function: name, other } = this.asked.value;
    const { functions = [], steps = [] } = this.report.value ?? {};
    return html`<div class="report-head">
      ${choice({
        label: "Module",
        id: `${this.id}-program`,
        options: this.programs.value,
        value: program,
        hidden: false,
        onChange: (id) => this.ask({ program: id, function: null, other: null }),
      })}
      ${choice({
        label: "Function",
        id: `${this.id}-function`,
        options: functions,
        value: name ?? "",
        onChange: (id) => this.ask({ function: id }),
      })}
      ${choice({
        label: "Compare with",
        id: `${this.id}-other`,
        options: [{ id: NONE, title: "none" }, ...others],
        group: steps.length ? { label: "Its schedule", options: steps } : null,
        value: other ?? NONE,
        hidden: !alwaysCompares && !others.length && !steps.length,
        onChange: (id) => this.ask({ other: id }),
      })}
      ${more}
    </div>`;
  }

  /** The title of what is compared with. */
  get otherTitle(): string {
    const { other } = this.asked.value;
    const options = [...this.programs.value, ...(this.report.value?.steps ?? [])];
    return options.find(({ id }) => id === other)?.title ?? "";
  }

  /** The view: the report, or why there is none, below the settings, which stay in reach. */
  view(
    texts: { empty: string; failed: string; stopped: string },
    settings: () => TemplateResult,
    content: (report: R) => unknown,
    hooks: Pick<View, "onResult" | "onRestart"> = {},
  ): View {
    const { panel, report, id, title } = this;
    const nothing = (): TemplateResult =>
      report.busy
        ? waitingNote(this.questions.what)
        : emptyNote("Nothing to look at yet", texts.empty);
    const failed = (): unknown => [
      report.stopped ? emptyNote("Stopped", texts.stopped) : emptyNote(texts.failed, report.error),
      html`<p class="report-again">${button("Try again", () => this.ask())}</p>`,
    ];
    reactive(
      panel,
      () =>
        report.error || report.value
          ? html`<div class="report ${id}-view" data-testid="${id}-view">
              ${settings()}${report.error ? failed() : content(report.value!)}</div>`
          : nothing(),
      () => {
        panel.ariaBusy = report.busy ? "true" : null;
      },
    );
    return {
      id,
      title,
      panel,
      ...hooks,
      onResult: (result) => {
        hooks.onResult?.(result);
        report.cancel();
        if (result.programs.length) {
          this.programs.value = result.programs;
          this.ask({ program: result.programs.at(-1)!.id, function: null, other: null });
        } else if (result.ok) {
          this.pending.drop();
          report.set(null);
        }
      },
      onShow: () => this.pending.look(),
    };
  }
}

/** A part of a report. */
export function part(title: string, ...content: unknown[]): TemplateResult {
  return html`<section class="report-part"><h2>${title}</h2>${content}</section>`;
}

/** What is to be said, sentence by sentence. */
export function sentences(
  { other, sentences }: { other: unknown; sentences: string[] },
  testId: string,
): TemplateResult {
  const list = html`<ul class="report-sentences" data-testid=${testId}>${sentences.map(
    (text) => html`<li>${text}</li>`,
  )}</ul>`;
  return part(other ? "What changes" : "What it does", list);
}
