/** A tab list with arrow keys, after the WAI-ARIA pattern. */

import { element, moveFocus, scrollWithin } from "../dom";

/** Pixels of the next tab that stay in sight, as a sign that the strip goes on. */
const EDGE = 24;

export interface Tab {
  id: string;
  title: string;
  panel: HTMLElement;
  /** Extra class of the tab's button. */
  kind?: string;
}

export interface TabList {
  select(id: string): void;
}

/** Fill `list` with tabs; `onSelect` is called for every change, by hand or by `select`. */
export function setUpTabs(list: HTMLElement, tabs: Tab[], onSelect: (id: string) => void): TabList {
  const buttons = new Map<string, HTMLButtonElement>();
  const select = (id: string): void => {
    for (const [name, button] of buttons) {
      button.setAttribute("aria-selected", String(name === id));
      button.tabIndex = name === id ? 0 : -1;
    }
    onSelect(id);
    const button = buttons.get(id);
    if (button) scrollWithin(list, button, EDGE);
  };
  for (const { id, title, panel, kind } of tabs) {
    const button = element(
      "button",
      {
        class: `tab ${kind ?? ""}`,
        role: "tab",
        id: `tab-${id}`,
        "data-testid": `tab-${id}`,
        "aria-controls": panel.id,
      },
      title,
    );
    button.addEventListener("click", () => select(id));
    buttons.set(id, button);
    list.append(button);
  }
  list.addEventListener("keydown", (event) => {
    const shown = [...buttons.values()].filter((button) => button.offsetParent !== null);
    moveFocus(event, shown, ["ArrowLeft", "ArrowRight"])?.click();
  });
  return { select };
}
