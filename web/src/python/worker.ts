/** The Python worker: loads Pyodide and mlcweb, then answers calls one after the other. */

import type { PyodideAPI } from "pyodide";
import gpu from "../../../mlcweb/runtime/host/page_gpu.js";
import host from "../../../mlcweb/runtime/host/page_script.js";
import { message } from "../errors";
import { GpuLine } from "../gpu/line";
import { ThreadLauncher } from "../threads/launcher";
import { TrialLine } from "../trials/line";
import { Backlog } from "./backlog";
import { listenToDownloads } from "./downloads";
import { isPicture } from "./incoming";
import { lockDown } from "./lockdown";
import type { FromWorker, RuntimeFacts, Stream, ToWorker } from "./messages";
import { OutputBatcher, type WaitForPage } from "./output";
import { dataOf, stop } from "./primordials";
import * as snapshot from "./snapshot";
import { listenToUnhandled } from "./unhandled";

type Loader = typeof import("pyodide");

const port = self as unknown as {
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
};
/** Held here, since programs are not to speak for the worker. */
const post = port.postMessage.bind(port);
let backlog: Backlog | null = null;
const output = new OutputBatcher(
  (chunks, size) => {
    backlog?.add(size);
    post({ type: "output", chunks, size });
  },
  () => performance.now(),
);

/** Where threads can share memory. */
let threads: ThreadLauncher | null = null;
/** Where they can, and Python cannot be suspended. */
let gpuLine: GpuLine | null = null;
let runtime: Promise<PyodideAPI> | null = null;
/** Once it is there. */
let loaded: PyodideAPI | null = null;
let rest: Promise<void> | null = null;
let queue: Promise<void> = Promise.resolve();

function receive(data: ToWorker): void {
  if (data.type === "start") {
    lockDown(self, data.base);
    if (data.interrupt) threads = new ThreadLauncher(post, data.interrupt);
    if (data.gpu && data.interrupt && !("Suspending" in WebAssembly))
      gpuLine = new GpuLine(data.gpu, data.interrupt);
    // Python's host finds them under these names.
    Object.assign(self, {
      mlcwebHost: host,
      mlcwebGpu: gpu,
      mlcwebGpuLine: gpuLine ?? undefined,
      mlcwebThreads: threads,
      mlcwebTrials: new TrialLine(data.trials),
      mlcwebTell: (name: string, text: string) => {
        const data: unknown = JSON.parse(text);
        if (name === "picture") {
          if (!isPicture(data)) throw new TypeError("A picture is url, width, height, description");
          output.show({ picture: data });
        } else if (name === "html") output.show({ html: String(data) });
        else post({ type: "event", name, data });
      },
    });
    if (data.backlog && data.interrupt) output.wait = waitForPage(data.backlog, data.interrupt);
    runtime = load(data.base, data.interrupt);
    runtime.catch((error: unknown) => post({ type: "failed", message: message(error) }));
    listenToUnhandled(self, {
      isAlive: () => loaded && isAlive(loaded),
      ended: (reason) => post({ type: "failed", message: message(reason) }),
      failed: (reason) => {
        output.write("stderr", `${message(reason).trimEnd()}\n`);
        output.flush();
      },
    });
  } else if (data.type === "ping") {
    post({ type: "pong" });
  } else if (data.type === "call") {
    queue = queue.then(() => answer(data));
  } else if (data.type === "interrupt") {
    void runtime?.then((pyodide) => pyodide.checkInterrupt());
  }
}

// A listener, since programs could call `onmessage`; and they may dispatch events. It is the first one,
// and the last that sees an event of the page: what it asks is not for programs.
addEventListener(
  "message",
  (event: MessageEvent<ToWorker>) => {
    if (!event.isTrusted) return;
    stop(event);
    receive(dataOf(event));
  },
  { capture: true },
);

/** Characters that may be on their way to the page. */
const AHEAD = 32_000;

function waitForPage(memory: SharedArrayBuffer, interrupt: Uint8Array): WaitForPage {
  const counted = new Backlog(memory);
  backlog = counted;
  return (blocking) => counted.wait(AHEAD, () => !blocking || interrupt[0] !== 0);
}

/** Start Pyodide with everything from `base`, and import mlcweb under the name `tvm` too. */
async function load(base: string, interrupt: Uint8Array | null): Promise<PyodideAPI> {
  let step: [stage: string, fraction: number] = ["", 0];
  const tell = (): void => post({ type: "progress", stage: step[0], fraction: step[1] });
  const progress = (stage: string, fraction: number): void => {
    step = [stage, fraction];
    tell();
  };
  const restoreFetch = listenToDownloads(self, tell);
  progress("Loading Python", 0.05);
  const folder = new URL("pyodide/", base).href;
  const wheels = new URL("wheels/", base).href;
  const release = await fetchManifest(wheels);
  const wheel = fetchWheel(wheels, release);
  // A failure is reported by the await below; until then it must not count as unhandled.
  wheel.catch(() => undefined);
  const lock = fetchFile(`${folder}pyodide-lock.json`).then((response) => response.text());
  const { loadPyodide, version: pyodideVersion } = (await import(
    /* @vite-ignore */ `${folder}pyodide.mjs`
  )) as Loader;
  progress("Loading Python", 0.15);
  const options = { indexURL: folder, lockFileContents: await lock, packageBaseUrl: folder };
  const key = `${pyodideVersion}-${release.sha256}`;
  const restored = await restore(key, folder, (extra) => loadPyodide({ ...options, ...extra }));
  const pyodide = restored ?? (await loadPyodide({ ...options, ...snapshot.startForSnapshot() }));
  progress("Loading mlcweb", 0.7);
  const files = wheel.then((content) => pyodide.unpackArchive(content, "wheel"));
  if (!restored) await files;
  pyodide.setStdin({ error: true });
  pyodide.setStdout(writer("stdout"));
  pyodide.setStderr(writer("stderr"));
  const version = pyodide.runPython(START) as string;
  const memory = restored ? null : snapshot.memoryOf(pyodide);
  if (memory) post({ type: "snapshot", key, memory }, [memory.buffer as ArrayBuffer]);
  if (interrupt) pyodide.setInterruptBuffer(interrupt);
  if (threads) threads.onInterrupt = () => pyodide.checkInterrupt();
  if (gpuLine) gpuLine.onInterrupt = () => pyodide.checkInterrupt();
  rest = loadRest(pyodide, files).finally(restoreFetch);
  // The first call waits for it, and reports a failure.
  rest.catch(() => undefined);
  const facts: RuntimeFacts = {
    pyodide: pyodide.version,
    python: pyodide.runPython("import platform; platform.python_version()") as string,
    mlcweb: version,
    isolated: interrupt !== null,
    restored: restored !== null,
    milliseconds: performance.now(),
  };
  loaded = pyodide;
  post({ type: "ready", runtime: facts });
  progress("Loading NumPy", 1);
  void rest.then(
    () => post({ type: "loaded" }),
    () => post({ type: "loaded" }),
  );
  return pyodide;
}

/** A start from the snapshot of an earlier visit; null where there is none, or it does not work. */
async function restore(
  key: string,
  folder: string,
  start: (options: object) => Promise<PyodideAPI>,
): Promise<PyodideAPI | null> {
  const memory = await snapshot.stored(key);
  if (!memory) return null;
  try {
    const core = (await import(/* @vite-ignore */ `${folder}pyodide.asm.mjs`)) as {
      default: snapshot.ModuleFactory;
    };
    return await start(snapshot.startFrom(memory, core.default));
  } catch {
    await snapshot.forget();
    return null;
  }
}

/**
 * What comes behind, since the page is useful without it; calls wait for it: our files, which
 * restored memory does not hold (late imports, the sources in tracebacks), and NumPy.
 */
async function loadRest(pyodide: PyodideAPI, files: Promise<void>): Promise<void> {
  await files;
  await pyodide.loadPackage("numpy", { messageCallback: () => undefined });
  await pyodide.runPythonAsync(LOADED);
}

// What is loaded stays: the garbage collector need not look at it again and again.
const LOADED = `
import gc, numpy
gc.freeze()
`;

// Restored memory holds the random numbers of the visit that made it.
const START = `
import builtins, os, random
random.seed()
os.environ["MPLBACKEND"] = "module://mlcweb.playground.figures"
import mlcweb, mlcweb.compat
import mlcweb.playground.bridge
mlcweb.compat.install()
mlcweb.playground.bridge.interrupts.install()
def no_input(prompt=""):
    raise EOFError("input() has nobody to ask in the page: write the value into the program")

builtins.input = no_input
# Notebooks have it without an import.
from IPython.display import display
builtins.display = display
mlcweb.__version__
`;

const CALL = `
from mlcweb.playground import bridge
await bridge.call(name, arguments)
`;

async function answer({ id, name, args }: ToWorker & { type: "call" }): Promise<void> {
  try {
    const pyodide = await runtime!;
    await rest;
    if (name === "cell.execute" || name === "notebook.execute")
      await loadImports(pyodide, args[0] as string);
    if (name === "files.place")
      for (const { text } of args[0] as { text: string }[]) await loadImports(pyodide, text);
    const scope = pyodide.toPy({ name, arguments: JSON.stringify(args) });
    try {
      // Asynchronous even for plain functions: only so may Python wait for promises.
      const text = (await pyodide.runPythonAsync(CALL, { globals: scope })) as string;
      output.flush();
      const { value, error } = JSON.parse(text) as { value?: unknown; error?: string };
      if (error === undefined) post({ type: "answer", id, value });
      else post({ type: "refusal", id, message: error });
    } finally {
      scope.destroy();
    }
  } catch (error) {
    output.flush();
    if (isFatal(error) || isDamage(error)) post({ type: "failed", message: lastLine(error) });
    else post({ type: "refusal", id, message: message(error) });
  }
}

const IMPORTS = `
import json
from mlcweb.playground import magics
json.dumps(magics.imports(source))
`;

/** Load those packages of Pyodide that the program imports and that are not there yet. */
async function loadImports(pyodide: PyodideAPI, source: string): Promise<void> {
  const scope = pyodide.toPy({ source });
  const names = JSON.parse(pyodide.runPython(IMPORTS, { globals: scope }) as string) as string[];
  scope.destroy();
  const packages = Object.values(pyodide.lockfile.packages)
    .filter(({ imports }) => imports.some((name) => names.includes(name)))
    .map(({ name }) => name)
    .filter((name) => !(name in pyodide.loadedPackages));
  if (!packages.length) return;
  const tell = (): void =>
    post({ type: "progress", stage: `Fetching ${packages.join(", ")}`, fraction: 1 });
  tell();
  const restoreFetch = listenToDownloads(self, tell);
  // Pyodide tells it of each package and of all that those need; one is enough to say.
  let reason = "";
  try {
    await pyodide.loadPackage(packages, {
      messageCallback: () => undefined,
      errorCallback: (message) => {
        reason = message;
      },
    });
    if (reason) output.write("stderr", `Fetching ${packages.join(", ")} failed: ${reason}\n`);
  } catch {
    // The import itself will fail, with a better message and at its line.
  } finally {
    restoreFetch();
    post({ type: "loaded" });
  }
}

/** Bytes taken at once: a text may be longer than a string of JavaScript. */
const PIECE = 1 << 16;

function writer(stream: Stream): { write(bytes: Uint8Array): number } {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      const piece = bytes.subarray(0, PIECE);
      output.write(stream, decoder.decode(piece, { stream: true }));
      return piece.length;
    },
  };
}

/** The wheel of mlcweb that this page comes with. */
interface Release {
  file: string;
  sha256: string;
}

async function fetchManifest(folder: string): Promise<Release> {
  return (await fetchFile(`${folder}manifest.json`)).json() as Promise<Release>;
}

async function fetchWheel(folder: string, { file, sha256 }: Release): Promise<ArrayBuffer> {
  const response = await fetchFile(`${folder}${file}?${sha256.slice(0, 12)}`);
  const content = await response.arrayBuffer();
  // A host may have said that it is compressed, and the browser have read it so.
  const [first, second] = new Uint8Array(content, 0, 2);
  if (first !== 0x1f || second !== 0x8b) return content;
  const plain = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

async function fetchFile(url: string): Promise<Response> {
  const response = await fetch(url);
  if (!response.ok)
    throw new Error(`${url}: the server says ${response.status} ${response.statusText}`);
  return response;
}

function isFatal(error: unknown): boolean {
  return typeof error === "object" && error !== null && "pyodide_fatal_error" in error;
}

/** Python answers each call of the bridge, be it by an error: but not where a program has changed what
 * the bridge itself is made of. */
function isDamage(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === "PythonError" &&
    !error.message.includes("KeyboardInterrupt")
  );
}

function isAlive(pyodide: PyodideAPI): boolean {
  try {
    return pyodide.runPython("True") === true;
  } catch {
    return false;
  }
}

/** Of an error of Python's, what went wrong without the traceback. */
function lastLine(error: unknown): string {
  return message(error).trimEnd().split("\n").at(-1) ?? "";
}
