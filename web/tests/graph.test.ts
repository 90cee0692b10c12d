import type { CDPSession } from "@playwright/test";
import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

const NOTES = 5_000;

/** A vault of that size: each note links to one that is higher up, and to one somewhere else. */
function vault(size: number): Record<string, string> {
  const path = (i: number) => `notes/${i % 50}/n${i}.md`;
  const text = (i: number) =>
    `# Note ${i}\n\nUnder [[${path(Math.floor(i / 7))}]], beside [[${path((i * 13) % size)}]]. #tag${i % 40}\n`;
  return Object.fromEntries(Array.from({ length: size }, (_, i) => [path(i), text(i)]));
}

interface Counted {
  tasks: number;
  pictures: number;
  frames: number;
  longest: number;
}

/** Counts what else the page does while the layout runs: each turn of this is a task of its own. */
const COUNT = () => {
  const counts: Counted = { tasks: 0, pictures: 0, frames: 0, longest: 0 };
  (window as unknown as { counts: Counted }).counts = counts;
  let steps = "";
  const running = () => document.querySelector<HTMLElement>("[data-layout=running]");
  const turn = () => {
    const graph = running();
    if (graph) {
      counts.tasks += 1;
      if (graph.dataset.steps !== steps) counts.pictures += 1;
      steps = graph.dataset.steps ?? "";
    }
    setTimeout(turn);
  };
  const frame = () => {
    if (running()) counts.frames += 1;
    requestAnimationFrame(frame);
  };
  turn();
  frame();
  new PerformanceObserver((list) => {
    if (running()) for (const entry of list.getEntries()) counts.longest = Math.max(counts.longest, entry.duration);
  }).observe({ type: "longtask" });
};

test("a graph of 5 000 notes is laid out in another thread, and the page answers meanwhile", async ({ page }, info) => {
  const server = await Server.start({ files: vault(NOTES) });
  try {
    const app = new App(page, server);
    await app.signIn();
    await page.evaluate(COUNT);
    const thread = page.waitForEvent("worker", { predicate: (worker) => worker.url().includes("layout") });
    await app.open("#/notes?show=graph");
    await thread;
    const graph = page.getByRole("application", { name: `Graph of ${NOTES} notes` });
    await expect(graph).toBeVisible();
    // Whatever the other thread does: the palette opens, finds and closes.
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox", { name: "Go to or run" }).fill("trace");
    await expect(page.getByRole("option", { name: /Go to Trace/ })).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page.locator("[data-layout=done]")).toBeVisible({ timeout: 120_000 });
    const counts = await page.evaluate(() => (window as unknown as { counts: Counted }).counts);
    info.annotations.push({ type: "while the layout ran", description: JSON.stringify(counts) });
    expect(counts.pictures).toBeGreaterThan(1);
    expect(counts.tasks).toBeGreaterThan(counts.pictures);
    expect(counts.frames).toBeGreaterThan(1);

    // The keyboard goes from note to note, zooms, and opens one.
    const told = page.locator("[data-note]");
    await graph.focus();
    await page.keyboard.press("ArrowDown");
    await expect(told).toBeVisible();
    const first = (await told.getAttribute("data-note")) ?? "";
    await page.keyboard.press("ArrowRight");
    await expect(told).not.toHaveAttribute("data-note", first);
    const zoom = (await page.locator("[data-zoom]").getAttribute("data-zoom")) ?? "";
    await page.keyboard.press("+");
    await expect(page.locator("[data-zoom]")).not.toHaveAttribute("data-zoom", zoom);
    const path = (await told.getAttribute("data-note")) ?? "";
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(new RegExp(`${encodeURIComponent(path)}$`));
    await expect(page.getByRole("article").getByRole("heading", { name: /^Note \d+$/ })).toBeVisible();
    // Thousands are listed, some dozens of lines are there.
    await expect(page.getByRole("treeitem").first()).toBeVisible();
    expect(await page.getByRole("treeitem").count()).toBeLessThan(200);
    expect(app.errors).toEqual([]);
  } finally {
    await server.stop();
  }
});

test("the pointer shows a note's title in the graph, and opens it", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes?show=graph");
  await expect(page.locator("[data-layout=done]")).toBeVisible();
  const graph = page.getByRole("application", { name: /^Graph of/ });
  const box = await graph.boundingBox();
  if (!box) throw new Error("the graph has no place");
  // The keyboard tells where a note is; then the pointer goes there.
  const told = page.locator("[data-note]");
  await graph.focus();
  await page.keyboard.press("ArrowDown");
  const [x = 0, y = 0] = ((await told.getAttribute("data-place")) ?? "").split(" ").map(Number);
  await page.keyboard.press("Escape");
  await expect(told).toHaveCount(0);
  await page.mouse.move(box.x + x, box.y + y);
  await expect(told).toBeVisible();
  const path = (await told.getAttribute("data-note")) ?? "";
  await page.mouse.down();
  await page.mouse.up();
  await expect(page).toHaveURL(new RegExp(encodeURIComponent(path).replaceAll(".", "\\.")));
});

/** Two fingers, where they are. */
const fingers = (session: CDPSession, type: "touchStart" | "touchMove", at: [number, number][]) =>
  session.send("Input.dispatchTouchEvent", { type, touchPoints: at.map(([x, y], id) => ({ x, y, id })) });

test("two fingers zoom the graph, and what is between them stays there", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes?show=graph");
  await expect(page.locator("[data-layout=done]")).toBeVisible();
  const box = await page.getByRole("application", { name: /^Graph of/ }).boundingBox();
  if (!box) throw new Error("the graph has no place");
  const zoom = async () => Number(await page.locator("[data-zoom]").getAttribute("data-zoom"));
  const before = await zoom();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const session = await page.context().newCDPSession(page);
  const apart = (by: number): [number, number][] => [
    [x - by, y],
    [x + by, y],
  ];
  await fingers(session, "touchStart", apart(40));
  await fingers(session, "touchMove", apart(60));
  await fingers(session, "touchMove", apart(80));
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await expect.poll(zoom).toBeCloseTo(before * 2, 1);
  // It was no click.
  await expect(page).toHaveURL(/show=graph/);
});
