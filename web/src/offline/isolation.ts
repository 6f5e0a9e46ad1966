/** Headers that isolate a page from others: precise timers, and memory shared between threads. */

export const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "cross-origin",
  // Also inside a frame of another site, where a browser knows it.
  "Document-Isolation-Policy": "isolate-and-require-corp",
};
