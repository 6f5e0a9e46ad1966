/** Opening a trace in the trace view from elsewhere, such as a trial of a search. */

import type { ShownTrace } from "../../python/wire";

const OPEN = "mlcweb-open-trace";

/** Show a trace that Python knows in the trace view, and bring that to the front. */
export function openTrace(trace: ShownTrace): void {
  document.dispatchEvent(new CustomEvent(OPEN, { detail: trace }));
}

export function onOpenTrace(listener: (trace: ShownTrace) => void): void {
  document.addEventListener(OPEN, (event) => listener((event as CustomEvent<ShownTrace>).detail));
}
