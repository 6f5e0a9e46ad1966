/** The line below the header that says why the page or Python does not start, with a way out. */

import { byId, element } from "../dom";

let shown: { notice: HTMLElement; text: HTMLElement } | null = null;
let again: () => void = () => undefined;

/** Show a complaint, with a button that calls `retry`; null takes it away. */
export function showStartNotice(complaint: string | null, retry: () => void): void {
  again = retry;
  if (complaint === null && !shown) return;
  shown ??= make();
  shown.notice.hidden = complaint === null;
  if (shown.text.textContent !== complaint) shown.text.textContent = complaint;
}

function make(): { notice: HTMLElement; text: HTMLElement } {
  const button = element("button", { class: "button", "data-testid": "retry" }, "Try again");
  button.addEventListener("click", () => again());
  const text = element("p");
  const notice = element(
    "div",
    { class: "start-notice", role: "alert", "data-testid": "start-notice", hidden: true },
    text,
    button,
  );
  byId("status").parentElement!.append(notice);
  return { notice, text };
}
