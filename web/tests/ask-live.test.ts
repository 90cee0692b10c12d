import { gate, Model } from "./support/model.ts";
import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

const latest = (app: App) => app.page.getByRole("log").getByRole("article").last();
const question = (app: App) => app.page.getByRole("textbox", { name: "Question" });

test("shows the question at once, before the server has answered anything", async ({ app, model }) => {
  const { page } = app;
  const held = gate();
  await page.route("**/rpc", async (route) => {
    const { method } = route.request().postDataJSON() as { method: string };
    if (method === "agent.create") await held.passed;
    return route.fallback();
  });
  model.says([{ text: "An answer." }]);
  await app.open("#/ask");
  await question(app).fill("Is this shown at once?");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article", { name: "Is this shown at once?" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
  held.open();
  await expect(latest(app).getByText("An answer.")).toBeVisible();
  await expect(page).toHaveURL(/#\/ask\/.+/);
  await expect(page.getByRole("article")).toHaveCount(1);
});

test("keeps the question when a loaded archive does not contain it yet", async ({ app, model }) => {
  const { page } = app;
  const middle = gate();
  let stale = 0;
  // What the server returns between accepting a question and storing it.
  await page.route("**/rpc", async (route) => {
    const { method } = route.request().postDataJSON() as { method: string };
    if (method !== "agent.export" || stale >= 2) return route.fallback();
    stale += 1;
    const response = await route.fetch();
    const answer = (await response.json()) as { result: { queries: unknown[]; exchanges: unknown[] } };
    answer.result.queries = [];
    answer.result.exchanges = [];
    return route.fulfill({ response, json: answer });
  });
  model.says([{ text: "First half, " }, { wait: middle.passed }, { text: "second half." }], [{ text: "Again." }]);
  await app.open("#/ask");
  await question(app).fill("Does this stay?");
  // Notes every moment without the question, once it was there.
  await page.evaluate(`
    window.lost = 0;
    let there = false;
    new MutationObserver(() => {
      const now = document.querySelector("article[aria-label='Does this stay?']") !== null;
      if (there && !now) window.lost += 1;
      there ||= now;
    }).observe(document.body, { childList: true, subtree: true });`);
  await page.keyboard.press("Enter");
  await expect(latest(app).getByText("First half,")).toBeVisible();
  middle.open();
  await expect(latest(app).getByText("First half, second half.")).toBeVisible();
  await expect(latest(app)).toHaveAttribute("aria-busy", "false");
  await expect.poll(() => stale).toBeGreaterThan(0);
  await question(app).fill("And the next?");
  await page.keyboard.press("Enter");
  await expect(latest(app).getByText("Again.")).toBeVisible();
  await expect(page.getByRole("article")).toHaveCount(2);
  expect(await page.evaluate("window.lost")).toBe(0);
});

test("puts the focus into the composer, so that typing starts a question", async ({ app }) => {
  await app.open("#/ask");
  await expect(question(app)).toBeFocused();
  await app.page.keyboard.type("hello");
  await expect(question(app)).toHaveValue("hello");
  await question(app).fill("");
});

test("follows an answer that arrives at once", async ({ app, model }) => {
  const lines = Array.from({ length: 400 }, (_, i) => ({ text: `Line ${i} of a long answer.\n\n` }));
  for (let i = 0; i < 3; i += 1) {
    model.says([...lines, { text: "The last line." }]);
    await app.open("#/ask");
    await question(app).fill(`Answer at once, ${i}`);
    await app.page.keyboard.press("Enter");
    await expect(latest(app)).toHaveAttribute("aria-busy", "false");
    await expect(latest(app).getByText("The last line.")).toBeInViewport();
    await expect(app.page.getByRole("button", { name: "Latest" })).toBeHidden();
  }
});

test("stops following when the user scrolls up", async ({ app, model }) => {
  const middle = gate();
  const lines = Array.from({ length: 100 }, (_, i) => ({ text: `Line ${i}.\n\n` }));
  model.says([...lines, { wait: middle.passed }, ...lines, { text: "The end." }]);
  await app.open("#/ask");
  await question(app).fill("Let me read the beginning");
  await app.page.keyboard.press("Enter");
  await expect(latest(app).getByText("Line 99.")).toBeInViewport();
  await app.page.getByRole("log").hover();
  await app.page.mouse.wheel(0, -600);
  await expect(app.page.getByRole("button", { name: "Latest" })).toBeVisible();
  middle.open();
  await expect(latest(app)).toHaveAttribute("aria-busy", "false");
  await expect(latest(app).getByText("The end.")).not.toBeInViewport();
});

test("removes the message about a lost connection when it is back, and covers no control", async ({ page }) => {
  const model = await Model.start();
  const server = await Server.start({ model: model.url });
  try {
    const app = new App(page, server);
    await app.signIn();
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await app.open("#/ask");
      await question(app).fill("Is anybody there?");
      await server.kill();
      await page.keyboard.press("Enter");
      const toast = page.getByRole("region", { name: "Messages" }).getByText("Connection to the server lost");
      await expect(toast).toBeVisible();
      // What is on top in the middle of each control is the control itself.
      const covered = await page.evaluate(() =>
        [...document.querySelectorAll("button, a, select, textarea")]
          .filter((control) => control.checkVisibility() && !control.closest(".skip, .toasts"))
          .filter((control) => {
            const { left, top, width, height } = control.getBoundingClientRect();
            const [x, y] = [left + width / 2, top + height / 2];
            if (width === 0 || y < 0 || y > innerHeight || x < 0 || x > innerWidth) return false;
            const on = document.elementFromPoint(x, y);
            return on?.closest(".toasts") !== null && on !== null;
          })
          .map((control) => control.getAttribute("aria-label") ?? control.textContent),
      );
      expect(covered, `${width} px`).toEqual([]);
      await server.up();
      await expect(page.getByText("Connection lost. Reconnecting…")).toBeHidden();
      await expect(toast).toBeHidden();
      // The question is still there to be sent.
      await expect(question(app)).toHaveValue("Is anybody there?");
      await question(app).fill("");
    }
  } finally {
    await server.stop();
    await model.stop();
  }
});

test("a failed answer is readable: spaces between the parts, names as code", async ({ app, model }) => {
  model.says({ status: 401, message: "scripted failure" });
  await app.open("#/ask");
  await question(app).fill("Does the key work?");
  await app.page.keyboard.press("Enter");
  const state = latest(app).locator(".state");
  await expect(state).toContainText("Failed: ");
  const text = (await state.innerText()).replaceAll("\n", " ");
  expect(text).not.toContain("`");
  expect(text).not.toMatch(/failure[a-z]/i);
});

test("text has the size it was designed with", async ({ app }) => {
  const { page } = app;
  await page.setViewportSize({ width: 390, height: 844 });
  await app.open("#/ask");
  const sizes = await page.evaluate(() => ({
    root: getComputedStyle(document.documentElement).fontSize,
    body: getComputedStyle(document.body).fontSize,
    smallest: Math.min(
      ...[...document.querySelectorAll("body *")]
        .filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3))
        .map((one) => Number.parseFloat(getComputedStyle(one).fontSize)),
    ),
  }));
  expect(sizes.root).toBe("16px");
  expect(sizes.body).toBe("14px");
  expect(sizes.smallest).toBeGreaterThanOrEqual(10);
});

test("an unknown address says so", async ({ app }) => {
  await app.open("#/nonsense");
  await expect(app.page.getByRole("heading", { name: "Page not found" })).toBeVisible();
  await app.page.getByRole("link", { name: "Go to Ask" }).click();
  await expect(question(app)).toBeVisible();
});

test("a wide table scrolls on a phone, and its words stay whole", async ({ app, model }) => {
  const { page } = app;
  await page.setViewportSize({ width: 390, height: 844 });
  const row = (word: string) => `| ${Array.from({ length: 7 }, () => word).join(" | ")} |\n`;
  model.says([{ text: row("heading") + row("---") + row("seventeen") }]);
  await app.open("#/ask");
  await question(app).fill("Show a wide table");
  await page.keyboard.press("Enter");
  await expect(latest(app).getByRole("cell", { name: "seventeen" })).toHaveCount(7);
  const lines = await latest(app)
    .getByRole("cell", { name: "seventeen" })
    .evaluateAll((cells) =>
      cells.map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
      }),
    );
  expect(lines).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
