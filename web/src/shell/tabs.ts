/** A tab list with arrow keys, after the WAI-ARIA pattern. */

import { element } from "../dom";

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
    reveal(list, buttons.get(id));
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
    const shown = [...buttons].filter(([, button]) => button.offsetParent !== null);
    const index = shown.findIndex(([, button]) => button === document.activeElement);
    if (index < 0) return;
    const last = shown.length - 1;
    const targets: Record<string, number> = {
      ArrowLeft: index === 0 ? last : index - 1,
      ArrowRight: index === last ? 0 : index + 1,
      Home: 0,
      End: last,
    };
    const target = shown[targets[event.key] ?? -1];
    if (!target) return;
    event.preventDefault();
    select(target[0]);
    target[1].focus();
  });
  return { select };
}

/** Bring a tab into the seen part of its strip; unlike `scrollIntoView`, move nothing around it. */
function reveal(list: HTMLElement, button: HTMLElement | undefined): void {
  if (!button || list.scrollWidth <= list.clientWidth) return;
  const [strip, tab] = [list.getBoundingClientRect(), button.getBoundingClientRect()];
  if (tab.left < strip.left) list.scrollLeft -= strip.left - tab.left + EDGE;
  else if (tab.right > strip.right) list.scrollLeft += tab.right - strip.right + EDGE;
}

/** Pixels of the next tab that stay in sight, as a sign that the strip goes on. */
const EDGE = 24;
