import { cpus, loadavg } from "node:os";
import type { Browser } from "@playwright/test";
import type { Server } from "../support/server.ts";
import { App, expect, test } from "../support/test.ts";

const TIMES = 15;

interface Measured {
  /** From the start of the navigation, in milliseconds. */
  painted: number;
  focusable: number;
  answered: number;
  /** What the browser loaded until then, compressed. */
  bytes: number;
}

/** Watches from the first moment on: when the composer can be focused, and when a key in it is on the screen. */
const WATCH = () => {
  const marks: Record<string, number> = {};
  (window as unknown as { marks: typeof marks }).marks = marks;
  const look = () => {
    const composer = document.querySelector<HTMLTextAreaElement>("#question");
    composer?.focus();
    if (!composer || document.activeElement !== composer) return requestAnimationFrame(look);
    marks.focusable = performance.now();
    composer.addEventListener("input", () =>
      requestAnimationFrame(() => {
        marks.answered = performance.now();
      }),
    );
    return 0;
  };
  requestAnimationFrame(look);
};

type Marks = Record<string, number | undefined>;
const marksOf = () => (window as unknown as { marks: Marks }).marks;

/** One visit of a browser that has never been here, except that it is signed in. */
async function visit(browser: Browser, server: Server): Promise<Measured> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await new App(page, server).signIn();
  const kept = await context.storageState();
  await context.close();

  const fresh = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState: kept });
  const visited = await fresh.newPage();
  await visited.addInitScript(WATCH);
  await visited.goto(server.url, { waitUntil: "commit" });
  await expect.poll(() => visited.evaluate(marksOf).then((marks) => marks.focusable), { intervals: [5] }).toBeDefined();
  await visited.keyboard.press("a");
  await expect.poll(() => visited.evaluate(marksOf).then((marks) => marks.answered), { intervals: [5] }).toBeDefined();
  await expect(visited.getByRole("textbox", { name: "Question" })).toHaveValue("a");
  const marks = await visited.evaluate(marksOf);
  const seen = await visited.evaluate(() => ({
    painted: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
    bytes: performance
      .getEntries()
      .reduce((sum, entry) => sum + ((entry as { transferSize?: number }).transferSize ?? 0), 0),
  }));
  await fresh.close();
  return { ...seen, focusable: marks.focusable ?? 0, answered: marks.answered ?? 0 };
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

test("how soon the page answers", async ({ browser, server }) => {
  const visits: Measured[] = [];
  // The first one also starts what the browser starts only once.
  await visit(browser, server);
  for (let i = 0; i < TIMES; i += 1) visits.push(await visit(browser, server));
  const row = (what: string, of: (one: Measured) => number) => {
    const all = visits.map(of);
    const [fastest, slowest] = [Math.min(...all), Math.max(...all)];
    return `${what.padEnd(42)} ${median(all).toFixed(0).padStart(5)} ms   (${fastest.toFixed(0)} to ${slowest.toFixed(0)})`;
  };
  console.log(`
from the start of the navigation, nothing cached, median of ${TIMES}; Chromium ${browser.version()},
${cpus().length} cores, load ${loadavg()
    .map((load) => load.toFixed(1))
    .join(" ")}

${row("something is painted", (one) => one.painted)}
${row("the composer can be focused", (one) => one.focusable)}
${row("a key pressed in it is on the screen", (one) => one.answered)}
loaded until then, compressed: ${(median(visits.map((one) => one.bytes)) / 1_000).toFixed(0)} kB
`);
});
