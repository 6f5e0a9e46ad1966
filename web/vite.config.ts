import { defineConfig } from "vite";

/** Cross-origin isolation: precise timers and an interrupt buffer. The page also works without. */
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "Document-Isolation-Policy": "isolate-and-require-corp",
};

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: { headers },
  preview: { headers },
});
