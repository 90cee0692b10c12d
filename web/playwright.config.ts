import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** Debian's Chromium; `CHROMIUM=/path/to/it` for another one. */
const known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const chromium = process.env.CHROMIUM ?? known.find((path) => existsSync(path));

export default defineConfig({
  testDir: "tests",
  testMatch: "**/*.test.ts",
  outputDir: "test-results",
  // Every worker has a server of its own. Two keep two cores busy.
  workers: 2,
  fullyParallel: false,
  // A machine under load is slow: waits are generous. A test that fails once and then passes is listed as flaky.
  timeout: 240_000,
  expect: { timeout: 45_000 },
  retries: process.env.CI ? 1 : 0,
  reporter: [["list"]],
  forbidOnly: true,
  use: {
    actionTimeout: 45_000,
    navigationTimeout: 45_000,
    viewport: { width: 1280, height: 800 },
    // Animations only make screenshots and clicks less certain.
    contextOptions: { reducedMotion: "reduce" },
    launchOptions: {
      executablePath: chromium,
      args: [
        // A container's root has no sandbox; the pages we open are our own.
        ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        // A page that `serveDist` made up comes from nowhere, and may not talk to this machine.
        ...(process.env.PAGE_DIST ? ["--disable-features=LocalNetworkAccessChecks"] : []),
      ],
    },
  },
});
