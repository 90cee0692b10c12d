/** `npm run screenshots`: the pictures in docs/images. They look best with the fonts Inter and JetBrains Mono installed. */
import base from "../playwright.config.ts";

export default { ...base, testDir: "screenshots", testMatch: "**/*.shot.ts", workers: 1, outputDir: "../test-results" };
