/** The Python worker: loads Pyodide and mlcweb, then answers calls one after the other. */

import type { PyodideAPI } from "pyodide";
import { OutputBatcher } from "./output";
import { TrialLine } from "./trials/line";
import type { FromWorker, RuntimeFacts, Stream, ToWorker } from "./protocol";

type Loader = typeof import("pyodide");

const port = self as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const post = (message: FromWorker): void => port.postMessage(message);
const output = new OutputBatcher((chunks) => post({ type: "output", chunks }), () => performance.now());

let runtime: Promise<PyodideAPI> | null = null;
let queue: Promise<void> = Promise.resolve();

port.onmessage = ({ data }) => {
  if (data.type === "start") {
    // Python's host finds it under this name.
    Object.assign(self, { mlcwebTrials: new TrialLine(data.trials) });
    runtime = load(data.base, data.interrupt);
    runtime.catch((error: unknown) => post({ type: "failed", message: describe(error) }));
  } else {
    queue = queue.then(() => answer(data));
  }
};

/** Start Pyodide with everything from `base`, and import mlcweb under the name `tvm` too. */
async function load(base: string, interrupt: Uint8Array | null): Promise<PyodideAPI> {
  const progress = (stage: string, fraction: number): void => post({ type: "progress", stage, fraction });
  progress("Loading Python", 0.05);
  const folder = new URL("pyodide/", base).href;
  const wheel = fetchWheel(new URL("wheels/", base).href);
  // A failure is reported by the await below; until then it must not count as unhandled.
  wheel.catch(() => undefined);
  const lock = fetchFile(`${folder}pyodide-lock.json`).then((response) => response.text());
  const { loadPyodide } = (await import(/* @vite-ignore */ `${folder}pyodide.mjs`)) as Loader;
  progress("Loading Python", 0.15);
  const pyodide = await loadPyodide({
    indexURL: folder,
    lockFileContents: lock,
    packageBaseUrl: folder,
    packages: ["numpy"],
  });
  progress("Loading mlcweb", 0.7);
  pyodide.unpackArchive(await wheel, "wheel");
  pyodide.setStdout(writer("stdout"));
  pyodide.setStderr(writer("stderr"));
  const version = pyodide.runPython(START) as string;
  progress("Loading NumPy", 0.85);
  await pyodide.runPythonAsync("import numpy");
  if (interrupt) pyodide.setInterruptBuffer(interrupt);
  const facts: RuntimeFacts = {
    pyodide: pyodide.version,
    python: pyodide.runPython("import platform; platform.python_version()") as string,
    mlcweb: version,
    isolated: interrupt !== null,
    milliseconds: performance.now(),
  };
  post({ type: "ready", runtime: facts });
  return pyodide;
}

const START = `
import mlcweb, mlcweb.compat
import mlcweb.playground.bridge
mlcweb.compat.install()
mlcweb.__version__
`;

const CALL = `
from mlcweb.playground import bridge
await bridge.call(name, arguments)
`;

async function answer({ id, name, args }: ToWorker & { type: "call" }): Promise<void> {
  try {
    const pyodide = await runtime!;
    if (name === "cell.execute") await loadImports(pyodide, args[0] as string);
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
    if (isFatal(error)) post({ type: "failed", message: describe(error) });
    else post({ type: "refusal", id, message: describe(error) });
  }
}

/** Load those packages of our lock file that the program imports and that are not there yet. */
async function loadImports(pyodide: PyodideAPI, source: string): Promise<void> {
  try {
    await pyodide.loadPackagesFromImports(source, {
      messageCallback: () => undefined,
      errorCallback: (message) => output.write("stderr", `${message}\n`),
    });
  } catch {
    // The import itself will fail, with a better message and at its line.
  }
}

function writer(stream: Stream): { write(bytes: Uint8Array): number } {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      output.write(stream, decoder.decode(bytes, { stream: true }));
      return bytes.length;
    },
  };
}

async function fetchWheel(folder: string): Promise<ArrayBuffer> {
  const manifest = await fetchFile(`${folder}manifest.json`);
  const { file, sha256 } = (await manifest.json()) as { file: string; sha256: string };
  return (await fetchFile(`${folder}${file}?${sha256.slice(0, 12)}`)).arrayBuffer();
}

async function fetchFile(url: string): Promise<Response> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server says ${response.status} ${response.statusText}`);
  return response;
}

function isFatal(error: unknown): boolean {
  return typeof error === "object" && error !== null && "pyodide_fatal_error" in error;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
