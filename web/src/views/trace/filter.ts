/** What steps of a trace are listed: those with a text, or those that change or decide something. */

import { element } from "../../dom";

/** Test ids of the two fields. */
export interface FilterIds {
  find: string;
  changesOnly: string;
}

export class StepFilter {
  readonly root: HTMLElement;
  private readonly text: HTMLInputElement;
  private readonly changes: HTMLInputElement;
  private readonly count = element("span", { class: "step-count", role: "status" });

  constructor(onChange: () => void, ids?: FilterIds) {
    this.text = element("input", {
      type: "search",
      placeholder: "Find steps",
      "aria-label": "Find steps",
      "data-testid": ids?.find,
    });
    this.changes = element("input", { type: "checkbox", "data-testid": ids?.changesOnly });
    this.root = element(
      "div",
      { class: "step-filter", role: "search", "aria-label": "Steps" },
      this.text,
      element("label", {}, this.changes, element("span", {}, "Without look-ups")),
      this.count,
    );
    this.text.addEventListener("input", onChange);
    this.changes.addEventListener("change", onChange);
  }

  /** Whether a step is listed; `matters` is whether it changes or decides something. */
  wants(text: string, matters: boolean): boolean {
    if (this.changes.checked && !matters) return false;
    return wordsOf(this.text.value).every((word) => text.toLowerCase().includes(word));
  }

  report(shown: number, all: number): void {
    this.count.textContent = shown === all ? "" : `${shown} of ${all}`;
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}
