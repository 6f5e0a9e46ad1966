import { expect, it, vi } from "vitest";
import { lockDown } from "../src/python/lockdown";

const BASE = "https://play.example/mlcweb/";

const asked: Request[] = [];

/** A scope with prototypes of its own, which are changed with it. */
function newScope() {
  class Navigator {
    readonly hardwareConcurrency = 4;
    get storage(): string {
      return "files";
    }
  }
  class Scope {
    readonly navigator = new Navigator();
    readonly performance = 1;
    fetch(request: unknown): Promise<Response> {
      asked.push(request as Request);
      return Promise.resolve(new Response("content"));
    }
    get indexedDB(): string {
      return "databases";
    }
    webkitRequestFileSystemSync(): string {
      return "files";
    }
  }
  return new Scope();
}

it("what is not listed is gone from the scope and from its prototypes", () => {
  const scope = Object.assign(newScope(), { caches: "responses", inventedTomorrow: true });
  lockDown(scope, BASE);
  for (const name of [
    "indexedDB",
    "caches",
    "webkitRequestFileSystemSync",
    "inventedTomorrow",
    "postMessage",
  ])
    expect(name in scope, name).toBe(false);
  expect("storage" in scope.navigator).toBe(false);
  expect(scope.navigator.hardwareConcurrency).toBe(4);
  expect(scope.performance).toBe(1);
});

it("programs read the page's own files only, without cookies", async () => {
  const scope = newScope();
  lockDown(scope as never, BASE);
  const ask = scope.fetch as unknown as typeof fetch;
  await ask("wheels/manifest.json");
  await ask(new URL("https://pypi.org/simple/"));
  await ask(new Request(`${BASE}index.html`, { credentials: "include" }));
  expect(asked.map(({ url }) => url)).toEqual([
    `${BASE}wheels/manifest.json`,
    "https://pypi.org/simple/",
    `${BASE}index.html`,
  ]);
  expect(asked.map(({ credentials }) => credentials)).toEqual(["omit", "omit", "omit"]);
  for (const refused of ["/", "/account", "../", "https://play.example/mlcweb-other/"])
    await expect(ask(refused)).rejects.toThrow("the page's own files");
  await expect(ask("wheels/", { method: "POST" })).rejects.toThrow("POST");
  expect(asked.length).toBe(3);
});

it("the browser's own fetch is left on no prototype", () => {
  const scope = newScope();
  lockDown(scope as never, BASE);
  expect("fetch" in Object.getPrototypeOf(scope)).toBe(false);
});

it("a program that replaces what is global reads no more", async () => {
  const scope = newScope();
  lockDown(scope as never, BASE);
  const ask = scope.fetch as unknown as typeof fetch;
  vi.spyOn(Request.prototype, "url", "get").mockReturnValue(`${BASE}wheels/`);
  vi.spyOn(Request.prototype, "method", "get").mockReturnValue("GET");
  vi.spyOn(String.prototype, "startsWith").mockReturnValue(true);
  const forged = { url: `${BASE}wheels/`, method: "GET" };
  vi.stubGlobal("Request", new Proxy(Request, { construct: () => forged }));
  const before = asked.length;
  try {
    await expect(ask("/account")).rejects.toThrow("the page's own files");
    await expect(ask("wheels/", { method: "POST" })).rejects.toThrow("POST");
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  }
  expect(asked.length).toBe(before);
});
