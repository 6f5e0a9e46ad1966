/**
 * The page's service worker: everything once loaded works offline, and hosts that cannot send
 * headers get an isolated page all the same, from the second visit on.
 *
 * A version is the content of all files. Its files are fetched into a cache of their own while the
 * version before serves on; files that did not change are copied from there. Once it is whole, pages
 * are served from it, by whichever worker is active: a worker takes the place of another only after
 * the last page is closed, as browsers do of themselves. Made to do so earlier (`skipWaiting`),
 * Chromium stops the old worker in the midst of what it answers, and a page that is just being
 * reloaded waits for ever.
 */

import { ISOLATION } from "./isolation";

interface Versioned {
  version: string;
  /** Path below the page's folder, and a digest of the content. */
  files: Record<string, string>;
}

/** Filled in when the page has been built. */
declare const __RELEASE__: Versioned;

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

interface ServiceWorkerScope {
  readonly registration: { readonly scope: string; readonly active: unknown };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}

const scope = self as unknown as ServiceWorkerScope;
const release = __RELEASE__;
const PREFIX = "mlcweb-page-";
const CACHE = PREFIX + release.version;
/** A cache with one entry: the name of the cache that pages are served from. */
const SERVED = `${PREFIX}served`;
/** Header of a cached response: the digest of its content. */
const DIGEST = "x-content-digest";

/**
 * Whether the pages that are open have no worker yet. A later worker has none to claim: it starts
 * when the last page is closed, and Chromium was seen to wait for ever where a page was just being
 * opened then.
 */
let isFirst = false;

const address = (path: string): string => new URL(path, scope.registration.scope).href;

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => {
  if (isFirst) event.waitUntil(scope.clients.claim());
});
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && request.url.startsWith(scope.registration.scope))
    event.respondWith(answer(request));
});

async function install(): Promise<void> {
  isFirst = scope.registration.active === null;
  const cache = await caches.open(CACHE);
  for (const [path, digest] of Object.entries(release.files)) {
    if (await cache.match(address(path))) continue;
    const known = await caches.match(address(path));
    const response =
      known?.headers.get(DIGEST) === digest
        ? known
        : await fetch(address(path), { cache: "no-cache" });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    await cache.put(address(path), marked(response, { [DIGEST]: digest }));
  }
  const before = await served();
  await (await caches.open(SERVED)).put(address(SERVED), new Response(CACHE));
  // The version before stays, for pages that are still open; older ones go.
  const kept = [SERVED, CACHE, before];
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && !kept.includes(name)) await caches.delete(name);
  }
}

async function served(): Promise<string> {
  const name = await (await caches.open(SERVED)).match(address(SERVED));
  return name?.text() ?? CACHE;
}

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  url.search = "";
  url.hash = "";
  if (url.pathname.endsWith("/")) url.pathname += "index.html";
  const cache = await caches.open(await served());
  const found = (await cache.match(url.href)) ?? (await caches.match(url.href));
  return marked(found ?? (await fetch(request)), ISOLATION);
}

/** A response with more headers. */
function marked(response: Response, more: Record<string, string>): Response {
  // What another origin answered cannot be looked into, so it cannot be made anew either.
  if (response.type === "opaque" || response.type === "opaqueredirect") return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(more)) headers.set(name, value);
  const { status, statusText } = response;
  const empty = status === 204 || status === 304;
  return new Response(empty ? null : response.body, { status, statusText, headers });
}
