/**
 * The page's service worker: everything once loaded works offline, and hosts that cannot send
 * headers get an isolated page all the same, from the second visit on.
 *
 * `release.json` names the files of the newest version and digests of their content. Every visit
 * looks for a newer one behind the page; its files are fetched into a cache of their own while the
 * version before serves on, those that did not change are copied from there. Once it is whole, the
 * visits after that are served from it. This script itself does not change with a version: where a
 * new worker takes the place of an old one just as a page is opened, Chromium may let it wait for
 * ever.
 */

import { ISOLATION } from "./isolation";

interface Release {
  version: string;
  /** Path below the page's folder, and a digest of the content. */
  files: Record<string, string>;
}

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
const PREFIX = "mlcweb-page-";
/** A cache with one entry: the name of the cache that pages are served from. */
const SERVED = `${PREFIX}served`;
/** Pyodide's packages, from here or from its CDN, once a program has imported them. */
const PACKAGES = "mlcweb-packages";
const CDN = "https://cdn.jsdelivr.net/pyodide/";
/** Header of a cached response: the digest of its content. */
const DIGEST = "x-content-digest";

/**
 * Whether the pages that are open have no worker yet. A later worker has none to claim: it starts
 * when the last page is closed, and Chromium was seen to wait for ever where a page was just being
 * opened then.
 */
let isFirst = false;
let lastUpdate: Promise<unknown> = Promise.resolve();

const address = (path: string): string => new URL(path, scope.registration.scope).href;

scope.addEventListener("install", (event) => {
  isFirst = scope.registration.active === null;
  event.waitUntil(update());
});
scope.addEventListener("activate", (event) => {
  if (isFirst) event.waitUntil(scope.clients.claim());
});
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (isPackage(request.url)) {
    event.respondWith(packageOf(request));
    return;
  }
  if (!request.url.startsWith(scope.registration.scope)) return;
  event.respondWith(answer(request));
  if (request.mode !== "navigate") return;
  // Without a network, the version that is there is the newest.
  lastUpdate = lastUpdate.then(update).catch(() => undefined);
  event.waitUntil(lastUpdate);
});

/** Stores the newest version and serves it from then on. */
async function update(): Promise<void> {
  const { version, files } = (await (await fetched("release.json")).json()) as Release;
  const before = await served();
  const newest = PREFIX + version;
  if (newest === before) return;
  const cache = await caches.open(newest);
  for (const [path, digest] of Object.entries(files)) {
    if (await cache.match(address(path))) continue;
    const cached = await caches.match(address(path));
    const response = cached?.headers.get(DIGEST) === digest ? cached : await fetched(path);
    await cache.put(address(path), marked(response, { [DIGEST]: digest }));
  }
  await (await caches.open(SERVED)).put(address(SERVED), new Response(newest));
  // The version before stays, for pages that are still open; older ones go.
  const kept = [SERVED, newest, before];
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && !kept.includes(name)) await caches.delete(name);
  }
}

async function fetched(path: string): Promise<Response> {
  const response = await fetch(address(path), { cache: "no-cache" });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

/** The name of the cache that pages are served from, once there is one. */
async function served(): Promise<string | undefined> {
  const name = await (await caches.open(SERVED)).match(address(SERVED));
  return name?.text();
}

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  url.search = "";
  url.hash = "";
  if (url.pathname.endsWith("/")) url.pathname += "index.html";
  const cacheName = await served();
  const cached = (await caches.match(url.href, { cacheName })) ?? (await caches.match(url.href));
  return marked(cached ?? (await fetch(request)), ISOLATION);
}

function isPackage(url: string): boolean {
  return url.endsWith(".whl") && (url.startsWith(CDN) || url.startsWith(address("pyodide/")));
}

/** A package, which Pyodide asks for by its hash: one of this version, or one imported before. */
async function packageOf(request: Request): Promise<Response> {
  const key = `${request.url}?${encodeURIComponent(request.integrity)}`;
  const cacheName = await served();
  const cached = (await caches.match(request.url, { cacheName })) ?? (await caches.match(key));
  if (cached) return cached;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(PACKAGES)).put(key, response.clone());
  return response;
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
