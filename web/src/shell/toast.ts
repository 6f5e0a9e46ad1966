/** A short message at the foot of the page that goes away by itself. */

import { byId } from "../dom";

/** Milliseconds that a message stays. */
const SHOWN = 5000;

let timer = 0;

export function toast(message: string): void {
  const box = byId("toast");
  box.textContent = message;
  box.hidden = false;
  clearTimeout(timer);
  timer = window.setTimeout(() => (box.hidden = true), SHOWN);
}
