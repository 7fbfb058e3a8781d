import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `hack/node npm run dev` serves the page with hot reload and passes the rest on to a running `vignette ui --port 8417`.
const backend = process.env.VIGNETTE_CONSOLE ?? "http://127.0.0.1:8417";
const passedOn = { target: backend, changeOrigin: true, ws: true, headers: { origin: backend } };

export default defineConfig({
  plugins: [react()],
  html: { cspNonce: "__CSP_NONCE__" },
  css: { transformer: "lightningcss" },
  build: {
    outDir: "dist",
    emptyOutDir: false, // it has a file that is in git
    assetsInlineLimit: 0, // the content security policy allows no data: scripts or fonts
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/k8s": passedOn, "/console": passedOn } },
  // A process for each file would load React and jsdom again. The first drawing of a page takes seconds on a busy machine.
  test: { pool: "vmThreads", environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], setupFiles: ["src/testing/setup.ts"], testTimeout: 60_000 },
});
