/**
 * Leaves programs what they need of the browser, and nothing else.
 *
 * Python reaches whatever the worker reaches. A program that came with a link must not read what
 * others have left on this origin, nor change the memory that the next visit starts from, nor speak
 * for the worker. So what is not listed here is deleted, with whatever browsers will add. The page
 * itself stores from its own thread, which programs do not reach.
 */

import { getter, uncurried } from "./primordials";

/** Of the browser; what belongs to the language stays, too (see `LANGUAGE`). */
const KEPT = new Set([
  ..."self location navigator performance crypto origin name console isSecureContext".split(" "),
  ..."crossOriginIsolated setTimeout clearTimeout setInterval clearInterval".split(" "),
  ..."queueMicrotask structuredClone atob btoa reportError importScripts".split(" "),
  ..."addEventListener removeEventListener dispatchEvent".split(" "),
  ..."onmessage onmessageerror onerror onunhandledrejection onrejectionhandled".split(" "),
  ..."onlanguagechange ononline onoffline onrtctransform".split(" "),
  ..."WorkerGlobalScope DedicatedWorkerGlobalScope WorkerNavigator WorkerLocation".split(" "),
  ..."Event EventTarget CustomEvent MessageEvent ErrorEvent PromiseRejectionEvent".split(" "),
  ..."MessageChannel MessagePort AbortController AbortSignal DOMException".split(" "),
  ..."Performance PerformanceEntry PerformanceMark PerformanceMeasure".split(" "),
  ..."Crypto CryptoKey SubtleCrypto Headers Request Response FormData".split(" "),
  ..."Blob File FileReader FileList ImageData URL URLSearchParams".split(" "),
  ..."TextDecoder TextEncoder TextDecoderStream TextEncoderStream".split(" "),
  ..."CompressionStream DecompressionStream ReadableStream WritableStream".split(" "),
  ..."TransformStream ReadableStreamDefaultReader ReadableStreamBYOBReader".split(" "),
  ..."ReadableStreamDefaultController ReadableByteStreamController".split(" "),
  ..."ReadableStreamBYOBRequest WritableStreamDefaultWriter".split(" "),
  ..."WritableStreamDefaultController TransformStreamDefaultController".split(" "),
  ..."ByteLengthQueuingStrategy CountQueuingStrategy".split(" "),
]);

/** Names that the language gives to every scope. */
const LANGUAGE = new Set([
  ..."Object Function Array Number Boolean String Symbol BigInt Date Promise RegExp".split(" "),
  ..."Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError".split(" "),
  ..."URIError SuppressedError Proxy Reflect JSON Math Intl Atomics Iterator".split(" "),
  ..."Map Set WeakMap WeakSet WeakRef FinalizationRegistry ArrayBuffer DataView".split(" "),
  ..."SharedArrayBuffer Int8Array Uint8Array Uint8ClampedArray Int16Array".split(" "),
  ..."Uint16Array Int32Array Uint32Array Float16Array Float32Array Float64Array".split(" "),
  ..."BigInt64Array BigUint64Array DisposableStack AsyncDisposableStack Temporal".split(" "),
  ..."globalThis Infinity NaN undefined eval isFinite isNaN parseFloat parseInt".split(" "),
  ..."decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape".split(" "),
  ..."WebAssembly constructor".split(" "),
]);

const KEPT_OF_NAVIGATOR = new Set(
  "hardwareConcurrency deviceMemory userAgent userAgentData language languages platform onLine appVersion appName appCodeName product vendor gpu constructor".split(
    " ",
  ),
);

interface Scope {
  navigator: object;
  fetch: typeof fetch;
}

/** Take from this worker whatever programs do not need, for good; before any program runs. */
export function lockDown(scope: object & Scope, base: string): void {
  // The browser's own is not to be found on any prototype.
  const fetch = guarded(scope.fetch.bind(scope), base);
  keepOnly(scope.navigator, (name) => KEPT_OF_NAVIGATOR.has(name));
  keepOnly(scope, (name) => KEPT.has(name) || LANGUAGE.has(name));
  scope.fetch = fetch;
}

/** Delete properties where they are defined, so that no getter is left on a prototype. */
function keepOnly(object: object, isKept: (name: string) => boolean): void {
  for (let owner: object = object; owner !== Object.prototype; ) {
    for (const name of Object.getOwnPropertyNames(owner)) {
      if (!isKept(name)) Reflect.deleteProperty(owner, name);
    }
    const next = Object.getPrototypeOf(owner) as object | null;
    if (next === null) return;
    owner = next;
  }
}

/**
 * `fetch` for programs: of this origin they get the page's own files below `base` only, and without
 * its cookies. What they get of others is up to the document's policy (`connect-src`).
 */
function guarded(plain: typeof fetch, base: string): typeof fetch {
  const { Request, URL } = globalThis;
  const urlOf = getter(Request.prototype, "url");
  const methodOf = getter(Request.prototype, "method");
  const startsWith = uncurried(String.prototype.startsWith);
  const origin = `${new URL(base).origin}/`;
  return async (input, init) => {
    // Relative to the page: the worker's own address is a blob's.
    const target = typeof input === "string" ? new URL(input, base) : input;
    const request = new Request(target, { ...init, credentials: "omit" });
    const url = urlOf(request);
    const method = methodOf(request);
    const reads = method === "GET" || method === "HEAD";
    if (startsWith(url, origin) && !(startsWith(url, base) && reads))
      throw new TypeError(`Programs may read the page's own files, not ${method} ${url}`);
    return plain(request);
  };
}
