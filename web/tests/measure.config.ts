/** `npm run measure`: how long the page takes. It prints figures and judges none: a busy machine is no fault. */
import base from "../playwright.config.ts";

export default {
  ...base,
  testDir: "measure",
  testMatch: "**/*.measure.ts",
  workers: 1,
  reporter: [["line"]] as [["line"]],
  outputDir: "../test-results",
};
