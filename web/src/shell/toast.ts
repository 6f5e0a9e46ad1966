/** A short message at the foot of the page that goes away by itself. */

import { byId, element } from "../dom";

/** Milliseconds that a message stays; longer where something can still be done about it. */
const SHOWN = 5000;
const SHOWN_WITH_ACTION = 10_000;

let timer = 0;

/** Show `message`, with a button that takes back or goes on, if there is an `action`. */
export function toast(message: string, action?: { label: string; run: () => void }): void {
  const box = byId("toast");
  box.replaceChildren(message);
  if (action) {
    const button = element("button", { class: "toast-action", type: "button" }, action.label);
    button.addEventListener("click", () => {
      box.hidden = true;
      action.run();
    });
    box.append(button);
  }
  box.hidden = false;
  clearTimeout(timer);
  timer = window.setTimeout(() => (box.hidden = true), action ? SHOWN_WITH_ACTION : SHOWN);
}
