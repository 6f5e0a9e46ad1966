/** The passes in their order, as a row of stations: arrow keys go from one to the next. */

import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { onArrows, range } from "../kit";

interface Pass {
  name: string;
  changed: boolean;
}

/** The list; `selected` is the pass whose result is shown, null for the end of them all. */
export function passList(
  passes: Pass[],
  selected: number | null,
  onSelect: (index: number | null) => void,
): TemplateResult {
  const last = passes.length;
  const current = selected ?? last;
  const select = (position: number): void => {
    if (position !== current) onSelect(position === last ? null : position);
  };
  const item = (position: number): TemplateResult => {
    const { name, changed } = passes[position] ?? { name: "result", changed: true };
    const id = position === last ? "code-pass-end" : "code-pass";
    return html`<li class="pass ${changed ? "changed" : ""}" role="option" id="code-pass-${position}"
      title=${changed ? nothing : "No change to these loops"} data-testid=${id}
      aria-selected=${position === current} @click=${() => select(position)}
      ${position === current ? ref(reveal) : nothing}>${name.replaceAll("_", " ")}${
        changed ? nothing : html`<span class="visually-hidden">, no change</span>`
      }</li>`;
  };
  return html`<ol class="passes" role="listbox" tabindex="0" aria-label="Loops after a pass"
    aria-orientation="horizontal" data-testid="code-passes" ?hidden=${!last}
    aria-activedescendant="code-pass-${current}"
    @keydown=${(event: KeyboardEvent) => onArrows(event, range(last + 1), current, select)}>
    ${range(last + 1).map(item)}</ol>`;
}

/** Scroll the row so far that a pass and something of its neighbours are in sight. */
function reveal(item: Element | undefined): void {
  // Once it is in the page.
  queueMicrotask(() => {
    const row = item?.parentElement;
    if (!(item instanceof HTMLElement) || !row) return;
    const [left, right] = [item.offsetLeft - 24, item.offsetLeft + item.offsetWidth + 24];
    if (left < row.scrollLeft) row.scrollLeft = left;
    else if (right > row.scrollLeft + row.clientWidth) row.scrollLeft = right - row.clientWidth;
  });
}
