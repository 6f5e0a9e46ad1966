import { expect, it } from "vitest";
import { denyStorage } from "../src/python/lockdown";

it("storage is gone from the scope and from its prototypes", () => {
  class Scope {
    readonly navigator = new (class Navigator {
      get storage(): string {
        return "files";
      }
    })();
    readonly kept = 1;
    get indexedDB(): string {
      return "databases";
    }
  }
  const scope = Object.assign(new Scope(), { caches: "responses" });
  denyStorage(scope);
  expect("indexedDB" in scope).toBe(false);
  expect("caches" in scope).toBe(false);
  expect("storage" in scope.navigator).toBe(false);
  expect(scope.kept).toBe(1);
});
