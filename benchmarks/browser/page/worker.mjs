/** One worker that holds all engines: mlcweb and NumPy in Pyodide, loaded as the playground loads
 * them, and the peers. The harness calls `self.ask(engine, method, name)`. */

import { GPU_PEERS } from "./gpu_peers.mjs";
import { PEERS } from "./peers.mjs";

const folder = new URL("pyodide/", self.location.href).href;

async function fetchBytes(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

async function loadPython() {
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const lockFileContents = new TextDecoder().decode(await fetchBytes(`${folder}pyodide-lock.json`));
  const pyodide = await loadPyodide({
    indexURL: folder,
    lockFileContents,
    packageBaseUrl: folder,
    packages: ["numpy"],
  });
  pyodide.unpackArchive(await fetchBytes("sources.zip"), "zip", { extractDir: "/sources" });
  pyodide.runPython(`
    import sys
    sys.path.insert(0, "/sources")
    from benchmarks.browser.in_page import Page
  `);
  // The options for building come with the address.
  const config = new URL(self.location.href).searchParams.get("config");
  return pyodide.globals.get("Page")(config);
}

const python = loadPython();
const peers = {};

/** What an engine answers; the programs of peers take their data from the page's Python. */
self.ask = async (engine, method, name) => {
  const page = await python;
  if (engine === "page" || engine === "numpy") return page[`${engine}_${method}`](name);
  // Python waits for the GPU, for which it has to be called so that it can be suspended.
  if (engine === "webgpu") return page[`webgpu_${method}`].callPromising(name);
  peers[engine] ??= await { ...PEERS, ...GPU_PEERS }[engine]();
  const peer = peers[engine];
  if (method !== "prepare") return peer[method](name);
  page.peer_check(engine, name, await peer.prepare(name, ...page.peer_data(engine, name)));
  return null;
};
