import { defineConfig } from "@playwright/test";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";

// The tests of the console in Debian's Chromium, with `bin/vignette ui` on the cluster of KUBECONFIG.
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(chromium)) throw new Error(`${chromium} is not there: run hack/test-packages, or set CHROMIUM to a browser's path`);

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  globalSetup: "./e2e/setup.ts",
  // Experiments run in real time, and tests beside them would be in their way.
  workers: 1,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  use: {
    ...(process.env.CONSOLE_ORIGIN && { baseURL: process.env.CONSOLE_ORIGIN }), // that of e2e/setup.ts, in the workers
    viewport: { width: 1280, height: 800 },
    trace: "retain-on-failure",
    launchOptions: { executablePath: chromium, args: userInfo().uid === 0 ? ["--no-sandbox"] : [] },
  },
});
