/** A bar between two panes, moved by pointer or arrow keys; its position is stored. */

import { load, store } from "../storage";

interface SplitterOptions {
  /** Set on `container` as a custom property: the share of the first pane, in percent. */
  property: string;
  direction: "row" | "column";
  label: string;
  initial: number;
}

const MIN_PERCENT = 15;

export function setUpSplitter(
  bar: HTMLElement,
  container: HTMLElement,
  options: SplitterOptions,
): void {
  const { property, direction, label, initial } = options;
  let share = Number(load(property)) || initial;
  bar.tabIndex = 0;
  bar.setAttribute("role", "separator");
  bar.setAttribute("aria-label", label);
  bar.setAttribute("aria-orientation", direction === "column" ? "vertical" : "horizontal");
  bar.setAttribute("aria-valuemin", String(MIN_PERCENT));
  bar.setAttribute("aria-valuemax", String(100 - MIN_PERCENT));

  const place = (percent: number): void => {
    share = Math.min(100 - MIN_PERCENT, Math.max(MIN_PERCENT, percent));
    container.style.setProperty(`--${property}`, share.toFixed(1));
    bar.setAttribute("aria-valuenow", share.toFixed(0));
  };
  const keep = (): boolean => store(property, share.toFixed(1));

  bar.addEventListener("pointerdown", (down) => {
    bar.setPointerCapture(down.pointerId);
    down.preventDefault();
  });
  bar.addEventListener("pointermove", (move) => {
    if (!bar.hasPointerCapture(move.pointerId)) return;
    const box = container.getBoundingClientRect();
    const ratio =
      direction === "column"
        ? (move.clientX - box.left) / box.width
        : (move.clientY - box.top) / box.height;
    place(ratio * 100);
  });
  bar.addEventListener("lostpointercapture", keep);
  bar.addEventListener("dblclick", () => {
    place(initial);
    keep();
  });
  bar.addEventListener("keydown", (event) => {
    const steps: Record<string, number> =
      direction === "column" ? { ArrowLeft: -2, ArrowRight: 2 } : { ArrowUp: -2, ArrowDown: 2 };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    place(share + step);
    keep();
  });
  place(share);
}
