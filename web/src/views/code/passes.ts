/** The passes in their order, as a row of stations: arrow keys go from one to the next. */

import { element } from "../../dom";

export class PassList {
  readonly root: HTMLOListElement;
  /** The pass whose result is shown; null for the end of them all. */
  selected: number | null = null;

  constructor(private readonly onSelect: (index: number | null) => void) {
    this.root = element("ol", {
      class: "passes",
      role: "listbox",
      tabindex: 0,
      "aria-label": "Loops after a pass",
      "aria-orientation": "horizontal",
      "data-testid": "code-passes",
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("click", (event) => {
      const item = (event.target as HTMLElement).closest("li");
      if (item) this.select([...this.root.children].indexOf(item));
    });
  }

  /** Show passes; what all of them made is shown until one is chosen. */
  show(passes: { name: string; changed: boolean }[]): void {
    this.selected = null;
    const items = passes.map(({ name, changed }, index) =>
      element(
        "li",
        {
          class: changed ? "pass changed" : "pass",
          role: "option",
          id: `code-pass-${index}`,
          "data-testid": "code-pass",
          title: changed ? `After ${name}` : `${name} leaves these loops as they are`,
        },
        name.replaceAll("_", " "),
        changed ? null : element("span", { class: "visually-hidden" }, ", no change"),
      ),
    );
    const end = element(
      "li",
      { class: "pass end", role: "option", id: "code-pass-end", "data-testid": "code-pass-end" },
      "result",
    );
    this.root.replaceChildren(...items, end);
    this.root.hidden = !passes.length;
    this.root.scrollLeft = 0;
    this.mark();
  }

  private select(position: number): void {
    const last = this.root.children.length - 1;
    const index = Math.min(Math.max(0, position), last);
    const selected = index === last ? null : index;
    if (selected === this.selected) return;
    this.selected = selected;
    this.mark();
    this.onSelect(selected);
  }

  private mark(): void {
    const items = [...this.root.children] as HTMLElement[];
    const current = items[this.selected ?? items.length - 1];
    for (const item of items) item.setAttribute("aria-selected", String(item === current));
    if (!current) return;
    this.root.setAttribute("aria-activedescendant", current.id);
    const [left, right] = [current.offsetLeft - 24, current.offsetLeft + current.offsetWidth + 24];
    if (left < this.root.scrollLeft) this.root.scrollLeft = left;
    else if (right > this.root.scrollLeft + this.root.clientWidth)
      this.root.scrollLeft = right - this.root.clientWidth;
  }

  private onKey(event: KeyboardEvent): void {
    const at = this.selected ?? this.root.children.length - 1;
    const targets: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      Home: 0,
      End: this.root.children.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(target);
  }
}
