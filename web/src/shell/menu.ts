/** A button that opens a list of actions, after the WAI-ARIA menu button pattern. */

import { element, moveFocus } from "../dom";

export interface MenuItem {
  label: string;
  testId?: string;
  run: () => void;
}

/** Make `button` open a menu; `items` is asked each time it opens. */
export function setUpMenu(button: HTMLElement, label: string, items: () => MenuItem[]): void {
  const list = element("div", {
    class: "menu",
    role: "menu",
    popover: "auto",
    "aria-label": label,
  });
  button.after(list);
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    list.replaceChildren(...items().map((item) => entry(item, list)));
    list.togglePopover();
    if (!list.matches(":popover-open")) return;
    placeBelow(list, button);
    // At once: the next key may be there before the event that tells of the list.
    (list.firstElementChild as HTMLElement | null)?.focus();
  });
  list.addEventListener("toggle", (event) => {
    button.setAttribute("aria-expanded", String((event as ToggleEvent).newState === "open"));
  });
  list.addEventListener("keydown", (event) => {
    moveFocus(event, [...list.children] as HTMLElement[], ["ArrowUp", "ArrowDown"]);
  });
}

/** Put an open popover under what opens it, as far as the page has room there. */
export function placeBelow(popover: HTMLElement, button: HTMLElement): void {
  const { bottom, right } = button.getBoundingClientRect();
  const { clientWidth, clientHeight } = document.documentElement;
  const rightmost = clientWidth - popover.offsetWidth - 8;
  const lowest = clientHeight - popover.offsetHeight - 8;
  popover.style.top = `${Math.max(8, Math.min(bottom + 6, lowest))}px`;
  popover.style.right = `${Math.max(8, Math.min(clientWidth - right, rightmost))}px`;
}

function entry({ label, testId, run }: MenuItem, list: HTMLElement): HTMLElement {
  const button = element(
    "button",
    { class: "menu-item", role: "menuitem", type: "button", "data-testid": testId },
    label,
  );
  button.addEventListener("click", () => {
    list.hidePopover();
    run();
  });
  return button;
}
