/**
 * Takes the browser's storage away from programs.
 *
 * Python reaches whatever the worker reaches. A program that came with a link must not read what
 * others have left on this origin, nor change the memory that the next visit starts from. The page
 * itself stores from its own thread, which programs do not reach.
 */

/** Ways to what is kept on this origin, or to a scope in which these names are back. */
const DENIED = [
  "indexedDB",
  "caches",
  "cookieStore",
  "localStorage",
  "sessionStorage",
  "BroadcastChannel",
  "Worker",
  "SharedWorker",
];
const DENIED_TO_NAVIGATOR = ["storage", "storageBuckets", "serviceWorker", "locks"];

/** Make this worker's storage unreachable, for good. Call it before any program runs. */
export function denyStorage(scope: object & { navigator: object }): void {
  for (const name of DENIED_TO_NAVIGATOR) remove(scope.navigator, name);
  for (const name of DENIED) remove(scope, name);
}

/** Delete a property where it is defined, so that no getter is left on a prototype. */
function remove(object: object, name: string): void {
  for (
    let owner: object | null = object;
    owner;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    if (Object.hasOwn(owner, name)) Reflect.deleteProperty(owner, name);
  }
}
