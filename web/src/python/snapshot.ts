/**
 * A snapshot of Python's memory, with mlcweb imported, stored for the next visit: restoring it takes a
 * fraction of a start from nothing.
 *
 * The worker makes it and restores it before any program runs there. The page stores it, since programs
 * do not reach its thread: what a program could change would be in every later visit.
 *
 * Pyodide calls the options behind this private, so everything about them is in this file, and a
 * plain start is always behind it. A snapshot fits one build of Pyodide and one of mlcweb: both
 * are in its key.
 */

import type { PyodideAPI } from "pyodide";

const CACHE = "mlcweb-start";

/** Held here, since programs are not to find it in the worker. Reading it throws where storage is denied. */
const storage: CacheStorage | null = (() => {
  try {
    return self.caches;
  } catch {
    return null;
  }
})();

/** What of Emscripten's module is used here. */
interface MemoryModule {
  HEAP8: Int8Array;
  growMemory(size: number): unknown;
}

export type ModuleFactory = (settings: unknown) => Promise<MemoryModule>;

/** Options for a start of which a snapshot can be made. */
export function startForSnapshot(): object {
  return { _makeSnapshot: true };
}

/** Options for a start from a snapshot. `factory` is the default export of pyodide.asm.mjs. */
export function startFrom(snapshot: Uint8Array, factory: ModuleFactory): object {
  return {
    _loadSnapshot: snapshot,
    // The memory of a new module is smaller than that of a program with modules imported.
    createPyodideModule: async (settings: unknown) => {
      const module = await factory(settings);
      if (module.HEAP8.length < snapshot.length) module.growMemory(snapshot.length);
      return module;
    },
  };
}

/** The memory as it is now; null where something in it cannot be stored. */
export function memoryOf(pyodide: PyodideAPI): Uint8Array | null {
  try {
    return (pyodide as unknown as { makeMemorySnapshot(): Uint8Array }).makeMemorySnapshot();
  } catch {
    return null;
  } finally {
    // So that there can be a snapshot, Python has seen a stand-in of the global object until now. Some
    // functions of the browser refuse to be called on it.
    pyodide.registerJsModule("js", globalThis);
  }
}

/** The snapshot under `key`, null where there is none or storage is denied. */
export async function stored(key: string): Promise<Uint8Array | null> {
  try {
    if (!storage) return null;
    const cached = await (await storage.open(CACHE)).match(address(key));
    if (!cached?.body) return null;
    const whole = cached.body.pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(whole).arrayBuffer());
  } catch {
    return null;
  }
}

/** Stores a snapshot under `key` instead of any other; whether that worked. */
export async function store(key: string, memory: Uint8Array): Promise<boolean> {
  try {
    if (!storage) return false;
    await forget();
    const packed = new Blob([memory as BlobPart])
      .stream()
      .pipeThrough(new CompressionStream("gzip"));
    const body = await new Response(packed).blob();
    await (await storage.open(CACHE)).put(address(key), new Response(body));
    return true;
  } catch {
    return false;
  }
}

/** Drops what is stored. */
export async function forget(): Promise<void> {
  try {
    await storage?.delete(CACHE);
  } catch {
    // Storage is denied, so nothing is there.
  }
}

function address(key: string): string {
  return new URL(`memory/${encodeURIComponent(key)}`, self.location.origin).href;
}
