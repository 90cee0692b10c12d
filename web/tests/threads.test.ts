import { expect, test } from "./support/test.ts";

test("a thread is begun, written to, archived and brought back", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/threads");
  await page.getByRole("button", { name: "New thread" }).click();
  const dialog = page.getByRole("dialog", { name: "New thread" });
  await dialog.getByLabel("Name").fill("checkout");
  await dialog.getByLabel("First entry").fill("Carts are lost when a session ends.");
  await dialog.getByLabel("What it is").selectOption("research");
  await dialog.getByRole("button", { name: "Begin the thread" }).click();
  await expect(page.getByRole("article", { name: "Entry 1, Research" })).toContainText("Carts are lost");

  await page.getByLabel("New entry").fill("Keep carts for **a week**.");
  await page.getByLabel("What it is").selectOption("decision");
  await page.keyboard.press("Tab");
  await page.getByLabel("New entry").press("ControlOrMeta+Enter");
  const decision = page.getByRole("article", { name: "Entry 2, Decision" });
  await expect(decision.locator("strong")).toHaveText("a week");
  await expect(page.getByLabel("New entry")).toHaveValue("");
  const { entries } = await server.call<{ entries: { entry_type: string; author: string }[] }>("thread.read", {
    thread_id: "checkout",
  });
  expect(entries.map((entry) => [entry.entry_type, entry.author])).toEqual([
    ["research", "user"],
    ["decision", "user"],
  ]);

  await page.getByRole("button", { name: "Archive", exact: true }).click();
  await expect(page.getByText("nothing more is written to it")).toBeVisible();
  await page.getByRole("tab", { name: "Archived" }).click();
  await expect(page.getByRole("list", { name: "Threads" }).getByRole("link", { name: /checkout/ })).toBeVisible();
  await page.getByRole("button", { name: "Bring back" }).click();
  await expect(page.getByLabel("New entry")).toBeVisible();
});

test("entries are found as one types, and the one that was found is marked", async ({ app, server }) => {
  const { page } = app;
  await server.call("thread.push", {
    thread_id: "auth-rework",
    content: "Refresh tokens need a shared store.",
    entry_type: "research",
  });
  await server.call("thread.push", {
    thread_id: "auth-rework",
    content: "We drop refresh tokens: revocation is too dear.",
    entry_type: "decision",
  });
  await app.open("#/threads");
  await page.getByRole("list", { name: "Threads" }).waitFor();
  await page.getByRole("main").focus();
  await page.keyboard.press("/");
  await page.keyboard.type("revocation dear");
  const found = page.getByRole("list", { name: "Entries that were found" }).getByRole("link");
  await expect(found.first()).toContainText("auth-rework, entry 2");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.locator("article.marked")).toContainText("revocation is too dear");
});

test("a long thread shows its end, and its beginning when asked", async ({ app, server }) => {
  const { page } = app;
  for (let i = 1; i <= 55; i++) await server.call("thread.push", { thread_id: "long", content: `number ${i} of many` });
  await app.open("#/threads/long");
  await expect(page.getByRole("article", { name: "Entry 55, Thought" })).toBeVisible();
  await expect(page.getByRole("article", { name: "Entry 1, Thought" })).toHaveCount(0);
  await page.getByRole("button", { name: "Earlier entries (5)" }).click();
  await expect(page.getByRole("article", { name: "Entry 1, Thought" })).toHaveCount(1);
  await app.open("#/threads/long?entry=2");
  await expect(page.locator("article.marked")).toContainText("number 2 of many");
});

test("what an entry says stays text", async ({ app, server }) => {
  const { page } = app;
  const content =
    "<img src=x onerror=window.hacked=1> [x](javascript:window.hacked=1)\n\n<script>window.hacked=1</script>";
  await server.call("thread.push", { thread_id: "hostile", content });
  await app.open("#/threads/hostile");
  await expect(page.getByText("<script>window.hacked=1</script>").first()).toBeVisible();
  expect(await page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined();
  await expect(page.locator("main img, main script")).toHaveCount(0);
});

test("threads have no serious finding of axe-core, light or dark, and fit a phone", async ({ app, server }) => {
  const { page } = app;
  await server.call("thread.push", { thread_id: "seen", content: "One entry of each kind.", entry_type: "decision" });
  for (const kind of ["thought", "research", "insight"])
    await server.call("thread.push", { thread_id: "seen", content: "And one more.", entry_type: kind });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await app.open("#/threads/seen?entry=2");
    await expect(page.getByRole("article", { name: "Entry 4, Insight" })).toBeVisible();
    expect(await app.findings(), colorScheme).toEqual([]);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "All threads" }).click();
  await expect(page.getByRole("list", { name: "Threads" })).toBeVisible();
});
