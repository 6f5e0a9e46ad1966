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
  const idOf = (position: number): string =>
    position === last ? "code-pass-end" : `code-pass-${position}`;
  const item = (position: number, kind: string, title: string | null, text: unknown) =>
    html`<li class="pass ${kind}" role="option" id=${idOf(position)} title=${title ?? nothing}
      data-testid=${position === last ? "code-pass-end" : "code-pass"}
      aria-selected=${position === current} @click=${() => select(position)}
      ${position === current ? ref(reveal) : nothing}>${text}</li>`;
  return html`<ol class="passes" role="listbox" tabindex="0" aria-label="Loops after a pass"
    aria-orientation="horizontal" data-testid="code-passes" ?hidden=${!last}
    aria-activedescendant=${idOf(current)}
    @keydown=${(event: KeyboardEvent) => onArrows(event, range(last + 1), current, select)}>
    ${passes.map(({ name, changed }, position) =>
      changed
        ? item(position, "changed", `After ${name}`, name.replaceAll("_", " "))
        : item(
            position,
            "",
            `${name} leaves these loops as they are`,
            html`${name.replaceAll("_", " ")}<span class="visually-hidden">, no change</span>`,
          ),
    )}${item(last, "end", null, "result")}</ol>`;
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
