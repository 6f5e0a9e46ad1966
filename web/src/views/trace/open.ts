/** Opening a trace in the trace view from elsewhere, such as a trial of a search. */

import type { Titled } from "../../python/wire";

const OPEN = "mlcweb-open-trace";

/** Show a trace that Python knows in the trace view, and bring that to the front. */
export function openTrace(trace: Titled): void {
  document.dispatchEvent(new CustomEvent(OPEN, { detail: trace }));
}

export function onOpenTrace(listener: (trace: Titled) => void): void {
  document.addEventListener(OPEN, (event) => listener((event as CustomEvent<Titled>).detail));
}
