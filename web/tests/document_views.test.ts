import { beforeEach, expect, test } from "vitest";
import type { DocumentMemory } from "../src/document/memory";
import type { PythonSession } from "../src/python/client";
import type { RunResult, ShownModule } from "../src/python/wire";
import { DocumentViews } from "../src/shell/document_views";
import type { View } from "../src/views/view";

const seen: Record<string, RunResult[]> = {};
const shown: string[] = [];
let restarted = (): void => undefined;

const session = {
  on: (_: string, listener: () => void) => {
    restarted = listener;
  },
  look: () => Promise.reject(new Error("no Python")),
} as unknown as PythonSession;

const module = (title: string): ShownModule => ({ id: title, title, source: title });
const result = (...modules: string[]): RunResult =>
  ({ ok: true, modules: modules.map(module), traces: [{}] }) as unknown as RunResult;
const memory = (id: string, modules: string[] = [], view: string | null = null): DocumentMemory =>
  ({
    id,
    view,
    latest: () => (modules.length ? { modules: modules.map(module) } : undefined),
    saveSoon: () => undefined,
  }) as unknown as DocumentMemory;

let views: DocumentViews;

beforeEach(() => {
  const two = ["tensorir", "trace"].map((id) => {
    seen[id] = [];
    return { id, onResult: (each: RunResult) => seen[id]!.push(each) } as unknown as View;
  });
  shown.length = 0;
  views = new DocumentViews(two, session, (view) => shown.push(view));
});

const lastModules = (): string[] => seen.tensorir!.at(-1)!.modules.map(({ title }) => title);

test("a document that is turned to shows its own results", () => {
  views.turnTo(memory("one"));
  views.take(result("of one"), "one");
  expect(lastModules()).toEqual(["of one"]);
  views.turnTo(memory("two", ["kept of two"]));
  expect(lastModules()).toEqual(["kept of two"]);
  expect(seen.trace!.at(-1)!.traces).toEqual([]);
  views.turnTo(memory("one", ["of one"]));
  expect(seen.trace!.at(-1)!.traces).toHaveLength(1);
});

test("a document that is closed is shown no more, until it runs again", () => {
  views.turnTo(memory("one"));
  views.take(result("of one"), "one");
  views.close("two");
  expect(lastModules()).toEqual(["of one"]);
  views.close("one");
  expect(seen.trace!.at(-1)!.traces).toEqual([]);
  expect(lastModules()).toEqual([]);
  views.take(result("again"), "one");
  expect(lastModules()).toEqual(["again"]);
});

test("what another document has run is not shown, and not what a Python that is gone knew", () => {
  views.turnTo(memory("one"));
  views.take(result("of two"), "two");
  expect(seen.tensorir).toHaveLength(0);
  restarted();
  views.turnTo(memory("two", ["kept of two"]));
  expect(lastModules()).toEqual(["kept of two"]);
  expect(seen.trace!.at(-1)!.traces).toEqual([]);
});

test("a document comes back with its view", () => {
  const one = memory("one", [], "trace");
  views.turnTo(one);
  expect(shown).toEqual(["trace"]);
  const two = memory("two");
  views.turnTo(two);
  views.opened("tensorir");
  expect([one.view, two.view]).toEqual(["trace", "tensorir"]);
});
