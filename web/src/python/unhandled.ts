/**
 * Errors in the worker that nobody awaits: of callbacks that a program has left, or the end of Python.
 *
 * Where Python is at its end (`os._exit`, a stack that overflowed), no call would ever be answered.
 */

interface Listener {
  /** Whether Python still works; null while it loads, when errors are the loader's. */
  isAlive(): boolean | null;
  /** Python is at its end, for a reason. */
  ended(reason: unknown): void;
  /** A callback has failed. */
  failed(reason: unknown): void;
}

export function listenToUnhandled(scope: EventTarget, listener: Listener): void {
  const hear = (event: Event, reason: unknown): void => {
    const alive = listener.isAlive();
    // What a program dispatches itself is its own affair.
    if (alive === null || !event.isTrusted) return;
    event.preventDefault();
    if (alive) listener.failed(reason);
    else listener.ended(reason);
  };
  scope.addEventListener("error", (event) => {
    const { error, message } = event as ErrorEvent;
    hear(event, error ?? message);
  });
  scope.addEventListener("unhandledrejection", (event) => {
    hear(event, (event as PromiseRejectionEvent).reason);
  });
}
