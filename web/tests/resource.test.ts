import { batch, effect, signal } from "@preact/signals-core";
import { expect, test } from "vitest";
import { Stopped } from "../src/python/client";
import { Cache, Resource } from "../src/views/resource";

/** A promise and what settles it. */
function later<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

test("a resource is empty, loading, ready, stale and ready again", async () => {
  const resource = new Resource<number>();
  expect(resource.state).toBe("empty");
  const first = later<number>();
  const loading = resource.load(() => first.promise);
  expect([resource.state, resource.value]).toEqual(["loading", null]);
  first.resolve(1);
  expect(await loading).toBe(true);
  expect([resource.state, resource.value]).toEqual(["ready", 1]);
  const second = later<number>();
  const again = resource.load(() => second.promise);
  expect([resource.state, resource.value, resource.busy]).toEqual(["stale", 1, true]);
  second.resolve(2);
  await again;
  expect([resource.state, resource.value]).toEqual(["ready", 2]);
});

test("a resource that follows signals asks once for what changes together", async () => {
  const [one, other] = [signal<number | null>(null), signal(2)];
  const asked: number[] = [];
  const resource = new Resource<number>();
  resource.follow(() => {
    const [a, b] = [one.value, other.value];
    return a === null ? null : async () => asked.push(a * b) && a * b;
  });
  expect([resource.state, asked]).toEqual(["empty", []]);
  batch(() => {
    one.value = 3;
    other.value = 5;
  });
  expect(resource.state).toBe("loading");
  await Promise.resolve();
  expect([resource.state, resource.value, asked]).toEqual(["ready", 15, [15]]);
  one.value = null;
  expect([resource.state, resource.value]).toEqual(["empty", null]);
});

test("of several questions the last one counts, whichever answer comes last", async () => {
  const resource = new Resource<string>();
  const [slow, quick] = [later<string>(), later<string>()];
  const taken: string[] = [];
  const take = (value: string) => taken.push(value);
  const first = resource.load(() => slow.promise, take);
  const second = resource.load(() => quick.promise, take);
  quick.resolve("second");
  slow.resolve("first");
  expect(await Promise.all([first, second])).toEqual([false, true]);
  expect([resource.value, taken]).toEqual(["second", ["second"]]);
});

test("an error keeps the answer before, and says whether it was stopped", async () => {
  const resource = new Resource<number>();
  resource.set(7);
  expect(await resource.load(() => Promise.reject(new Error("no such loop")))).toBe(false);
  expect([resource.state, resource.error, resource.value]).toEqual(["error", "no such loop", 7]);
  expect(resource.stopped).toBe(false);
  await resource.load(() => Promise.reject(new Stopped("ended")));
  expect(resource.stopped).toBe(true);
  resource.set(null);
  expect([resource.state, resource.error]).toEqual(["empty", ""]);
});

test("an answer that nobody waits for any more changes nothing", async () => {
  const resource = new Resource<number>();
  resource.set(1);
  const answer = later<number>();
  let signal!: AbortSignal;
  const loading = resource.load((given) => {
    signal = given;
    return answer.promise;
  });
  resource.cancel();
  expect(signal.aborted).toBe(true);
  answer.resolve(2);
  expect(await loading).toBe(false);
  expect([resource.state, resource.value]).toEqual(["ready", 1]);
});

test("who reads the value follows answers, not states", async () => {
  const resource = new Resource<number>();
  const seen: (number | null)[] = [];
  effect(() => {
    seen.push(resource.value);
  });
  await resource.load(() => Promise.resolve(1));
  await resource.load(() => Promise.resolve(1));
  await resource.load(() => Promise.resolve(2));
  expect(seen).toEqual([null, 1, 2]);
});

test("an answer is asked for once by its key, and again where it failed or was forgotten", async () => {
  const cache = new Cache<number>();
  let asked = 0;
  const ask = async () => {
    asked += 1;
    if (asked === 1) throw new Error("no");
    return asked;
  };
  await expect(cache.get("1 a", ask)).rejects.toThrow("no");
  expect(await cache.get("1 a", ask)).toBe(2);
  expect(await cache.get("1 a", ask)).toBe(2);
  cache.clear("2 ");
  expect(cache.has("1 a")).toBe(true);
  cache.clear("1 ");
  expect(await cache.get("1 a", ask)).toBe(3);
});
