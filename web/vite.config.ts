import { defineConfig } from "vite";
import { lessons } from "./plugins/lessons";
import { release } from "./scripts/release";
import { ISOLATION } from "./src/offline/isolation";

/** Scripts whose names never change: pages of others and browsers ask for them by name. */
const FIXED_NAMES: Record<string, string> = { elements: "embed.js", offline: "service-worker.js" };

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    license: { fileName: "licenses/npm.md" },
    rollupOptions: {
      input: {
        index: "index.html",
        embed: "embed.html",
        elements: "src/embed/elements.ts",
        offline: "src/offline/service_worker.ts",
      },
      output: {
        entryFileNames: ({ name }) => FIXED_NAMES[name] ?? "assets/[name]-[hash].js",
      },
    },
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
  },
  plugins: [lessons(), release()],
  worker: { format: "es" },
  server: { headers: ISOLATION },
  preview: { headers: ISOLATION },
});
