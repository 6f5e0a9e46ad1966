/** The decisions of a trace as controls: choosing another value derives the program again. */

import { html, type TemplateResult } from "lit-html";
import type { TraceControl } from "../../python/wire";
import { counted } from "../format";
import { button, fieldValue, optionList, setting } from "../kit";
import { refusalKey, same, type TraceModel } from "./model";

type Part = TraceControl["parts"][number];

export function decisions(model: TraceModel): TemplateResult {
  const { changes, derived } = model.shown.value!;
  const { controls } = derived;
  const { text, state } = model.outcome.value;
  const changed = controls.filter((control) => control.changed).length;
  const count = counted(controls.length, "decision");

  const part = (control: TraceControl, { name, value, options }: Part): TemplateResult => {
    const { step } = control;
    if (!options.length)
      return html`<span class="decision-part"><span>${name}</span><output>${value}</output></span>`;
    const decision = model.asked.value?.changes[step] ?? control.decision;
    const chosen = options.findIndex((each) => same(each.decision, decision));
    const items = options.map((each, number) => {
      const hint = each.reason ?? model.refused.value.get(refusalKey(step, each.decision)) ?? null;
      const title = hint === null ? each.text : `${each.text}: ${hint}`;
      return { id: String(number), title, disabled: hint !== null, hint };
    });
    const choose = (event: Event): void => {
      const next = options[Number(fieldValue(event))]!.decision;
      void model.change({ ...changes, [step]: next }, step);
    };
    return html`<label class="decision-part"><span>${name}</span>
      <select data-testid="trace-decision-value" @change=${choose}>${optionList(items, String(chosen))}</select></label>`;
  };
  const box = (control: TraceControl): TemplateResult => {
    const { step, kind, label, parts } = control;
    const look = (): void => void model.lookAhead(step);
    return html`<fieldset class="decision-control" data-testid="trace-decision" data-step=${step}
      data-kind=${kind} ?data-changed=${control.changed} @focusin=${look} @pointerenter=${look}>
      <legend><button class="decision-step" type="button" @click=${setting(model.step, step)}>Step ${step}: ${label}</button></legend>
      ${parts.map((each) => part(control, each))}
    </fieldset>`;
  };
  return html`<details class="decisions-box" open ?hidden=${!controls.length}>
    <summary>${changed ? `${count}, ${changed} changed` : count}</summary>
    <div class="decision-body">
      <div class="decision-list">${controls.map(box)}</div>
      <div class="decision-foot">
        <p class="decision-outcome" role="status" data-testid="trace-outcome" data-state=${state}>${text}</p>
        ${button("Reset to recorded", () => model.change({}, null), {
          testId: "trace-decision-reset",
          kind: "small",
          disabled: !changed,
        })}
      </div>
    </div>
  </details>`;
}
