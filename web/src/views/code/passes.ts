/** The passes in their order, as a row of stations: arrow keys go from one to the next. */

import { html, nothing, type TemplateResult } from "lit-html";
import { listbox } from "../kit";

interface Pass {
  name: string;
  changed: boolean;
}

/** The list; `selected` is the pass whose result is shown, null for the end of them all. */
export function passList(
  passes: Pass[],
  selected: number | null,
  onSelect: (index: number | null) => void,
): TemplateResult | typeof nothing {
  const last = passes.length;
  if (!last) return nothing;
  const chosen = selected ?? last;
  return listbox({
    label: "Loops after a pass",
    kind: "passes",
    id: "code-pass",
    testId: "code-passes",
    optionTestId: "code-pass",
    chosen,
    choose: (pass) => {
      if (pass !== chosen) onSelect(pass === last ? null : pass);
    },
    options: [...passes, { name: "result", changed: true }].map(({ name, changed }) => ({
      kind: changed ? "pass changed" : "pass",
      title: changed ? nothing : "No change to these loops",
      content: html`${name.replaceAll("_", " ")}${changed ? "" : NO_CHANGE}`,
    })),
  });
}

const NO_CHANGE = html`<span class="visually-hidden">, no change</span>`;
