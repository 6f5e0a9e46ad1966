/** The decisions of a trace as controls: choosing another value derives the program anew. */

import { element } from "../../dom";
import type { TraceControl, TraceOption } from "../../python/protocol";

interface DecisionsOptions {
  onChoose: (step: number, decision: unknown) => void;
  onReset: () => void;
  /** The reader wants to see the step itself. */
  onVisit: (step: number) => void;
  /** Whether Python has time for `refusal`. */
  mayAsk: () => boolean;
  /** Why a decision that its own step allows cannot be, as later steps see it. */
  refusal: (step: number, decision: unknown) => Promise<string | null>;
}

export class Decisions {
  readonly root: HTMLDetailsElement;
  private readonly summary = element("summary", {}, "Decisions");
  private readonly list = element("div", { class: "decision-list" });
  private readonly reset = element(
    "button",
    {
      class: "button small",
      type: "button",
      "data-testid": "trace-decision-reset",
      disabled: true,
    },
    "As recorded",
  );
  private readonly said = element("p", {
    class: "decision-outcome",
    role: "status",
    "data-testid": "trace-outcome",
  });
  private controls: TraceControl[] = [];
  private selects = new Map<string, HTMLSelectElement>();
  /** What later steps refuse, by step and decision. */
  private refused = new Map<string, string>();
  private asked = new Set<number>();
  private generation = 0;

  constructor(private readonly options: DecisionsOptions) {
    this.root = element(
      "details",
      { class: "decisions-box", open: true },
      this.summary,
      element(
        "div",
        { class: "decision-body" },
        this.list,
        element("div", { class: "decision-foot" }, this.said, this.reset),
      ),
    );
    this.reset.addEventListener("click", () => options.onReset());
  }

  /** Show the decisions in force. */
  show(controls: TraceControl[]): void {
    this.generation += 1;
    this.refused.clear();
    this.asked.clear();
    const stays = shape(controls) === shape(this.controls);
    this.controls = controls;
    this.root.hidden = controls.length === 0;
    const changed = controls.filter((control) => control.changed).length;
    const count = controls.length === 1 ? "1 decision" : `${controls.length} decisions`;
    this.summary.textContent = changed ? `${count}, ${changed} changed` : count;
    this.reset.disabled = changed === 0;
    // Elements stay where they can, so that the keyboard stays where it is.
    if (!stays) this.build();
    for (const control of controls) this.fill(control);
  }

  /** Say what came of a choice. */
  say(text: string, state: "busy" | "good" | "bad" | "" = ""): void {
    this.said.textContent = text;
    this.said.dataset.state = state;
  }

  private build(): void {
    this.selects.clear();
    this.list.replaceChildren(...this.controls.map((control) => this.control(control)));
  }

  private control({ step, kind, label, parts }: TraceControl): HTMLElement {
    const visit = element(
      "button",
      { class: "decision-step", type: "button" },
      `Step ${step}: ${label}`,
    );
    visit.addEventListener("click", () => this.options.onVisit(step));
    const fields = parts.map(({ name, options }, part) => {
      if (!options.length) {
        return element(
          "span",
          { class: "decision-part" },
          element("span", {}, name),
          element("output", { "data-part": part }),
        );
      }
      const select = element("select", {
        "data-testid": "trace-decision-value",
        "data-part": part,
      });
      this.selects.set(`${step}/${part}`, select);
      select.addEventListener("change", () => this.choose(step, part, select));
      return element("label", { class: "decision-part" }, element("span", {}, name), select);
    });
    const box = element(
      "fieldset",
      {
        class: "decision-control",
        "data-testid": "trace-decision",
        "data-step": step,
        "data-kind": kind,
      },
      element("legend", {}, visit),
      ...fields,
    );
    box.addEventListener("focusin", () => void this.look(step));
    box.addEventListener("pointerenter", () => void this.look(step));
    return box;
  }

  private fill(control: TraceControl): void {
    const { step, parts, changed } = control;
    const box = this.list.querySelector<HTMLElement>(`[data-step="${step}"]`)!;
    box.toggleAttribute("data-changed", changed);
    box.querySelector("legend button")!.textContent = `Step ${step}: ${control.label}`;
    for (const [part, { value, options }] of parts.entries()) {
      const select = this.selects.get(`${step}/${part}`);
      if (!select) {
        box.querySelector(`output[data-part="${part}"]`)!.textContent = value;
        continue;
      }
      select.replaceChildren(
        ...options.map((option, number) => {
          const reason = this.reason(step, option);
          return element(
            "option",
            {
              value: number,
              disabled: reason !== null,
              title: reason,
              selected: same(option.decision, control.decision),
            },
            reason === null ? option.text : `${option.text}: ${reason}`,
          );
        }),
      );
    }
  }

  private choose(step: number, part: number, select: HTMLSelectElement): void {
    const control = this.controls.find((each) => each.step === step)!;
    const option = control.parts[part]!.options[Number(select.value)];
    if (option && this.reason(step, option) === null) this.options.onChoose(step, option.decision);
  }

  /** Ask of every value that seems possible whether the steps that follow can live with it. */
  private async look(step: number): Promise<void> {
    if (this.asked.has(step) || !this.options.mayAsk()) return;
    this.asked.add(step);
    const mine = this.generation;
    const control = this.controls.find((each) => each.step === step)!;
    const decisions = new Map<string, unknown>();
    for (const { options } of control.parts) {
      for (const { decision, reason } of options) {
        if (reason === null && !same(decision, control.decision))
          decisions.set(key(step, decision), decision);
      }
    }
    let found = false;
    for (const [name, decision] of decisions) {
      const reason = await this.options.refusal(step, decision).catch(() => null);
      if (mine !== this.generation) return;
      if (reason === null) continue;
      this.refused.set(name, reason);
      found = true;
    }
    if (found) this.fill(control);
  }

  private reason(step: number, option: TraceOption): string | null {
    return option.reason ?? this.refused.get(key(step, option.decision)) ?? null;
  }
}

/** What the elements of controls depend on. */
function shape(controls: TraceControl[]): string {
  return JSON.stringify(
    controls.map(({ step, kind, parts }) => [
      step,
      kind,
      parts.map(({ name, options }) => [name, options.length > 0]),
    ]),
  );
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function key(step: number, decision: unknown): string {
  return `${step}:${JSON.stringify(decision)}`;
}
