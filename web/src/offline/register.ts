/** Registers the service worker once Python is there, so that it takes nothing from the start. */

import type { PythonSession } from "../python/client";

export function registerOffline(session: PythonSession): void {
  let done = false;
  const register = (): void => {
    if (done || session.state !== "ready") return;
    done = true;
    setTimeout(() => {
      try {
        navigator.serviceWorker
          ?.register(new URL("service-worker.js", document.baseURI))
          .then((registration) => noteWhenActive(registration))
          .catch(() => undefined);
      } catch {
        // Storage is denied in this frame: the page works online.
      }
    }, 1000);
  };
  session.on("stored", register);
  session.on("state", () => {
    if (session.runtime?.restored) register();
  });
}

/** `data-offline` of the document says when everything is there. */
function noteWhenActive(registration: ServiceWorkerRegistration): void {
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  const note = (): void => {
    if (worker?.state === "activated") document.documentElement.dataset.offline = "ready";
  };
  worker?.addEventListener("statechange", note);
  note();
}
