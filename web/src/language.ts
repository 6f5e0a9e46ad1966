/**
 * Makes sure that the browser's language is one. WebKit names the POSIX locale "C", which is none:
 * `Intl` refuses it, and uPlot, which asks `Intl` while it is loaded, takes the whole page with it.
 *
 * To be imported before such a library.
 */

const FALLBACK = "en-US";

try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: FALLBACK, configurable: true });
}
