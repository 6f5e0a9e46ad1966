/** Vite plugin: `release.json` says which files the built page has, and what is in them. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import type { Plugin } from "vite";

/** Files that are never served from a cache. */
const ALWAYS_FETCHED = ["release.json", "service-worker.js"];

const BEFORE_ANY_PROGRAM = /^(wheels\/mlcweb|pyodide\/(numpy|micropip|packaging))-/;

export function release(): Plugin {
  let folder = "";
  let failed = false;
  return {
    name: "release",
    apply: "build",
    configResolved(config) {
      folder = resolve(config.root, config.build.outDir);
    },
    buildEnd(error) {
      failed = error !== undefined;
    },
    closeBundle() {
      if (failed) return;
      const files: Record<string, string> = {};
      for (const path of walk(folder)) {
        const name = relative(folder, path).split(sep).join("/");
        // Compressed twins are sent by servers in the place of the files themselves.
        if (ALWAYS_FETCHED.includes(name) || name.endsWith(".gz") || name.endsWith(".br")) continue;
        // Packages that only some programs import are stored once one does.
        if (name.endsWith(".whl") && !BEFORE_ANY_PROGRAM.test(name)) continue;
        // Texts that the page itself never asks for.
        if (name.startsWith("licenses/")) continue;
        files[name] = digest(readFileSync(path));
      }
      const version = digest(JSON.stringify(files));
      writeFileSync(join(folder, "release.json"), JSON.stringify({ version, files }));
    },
  };
}

function* walk(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

function digest(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 16);
}
