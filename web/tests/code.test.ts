import { execFileSync } from "node:child_process";
import { files, Server } from "./support/server.ts";
import { App, expect, loaded, test } from "./support/test.ts";

test("code is found as one types, and the passage is marked in its file", async ({ app }) => {
  const { page } = app;
  await app.open("#/code");
  await page.getByRole("heading", { name: "Map of the code" }).waitFor();
  await page.getByRole("main").focus();
  await page.keyboard.press("/");
  await page.keyboard.type("check a token");
  const found = page.getByRole("list", { name: "Passages" }).getByRole("link");
  await expect(found.filter({ hasText: "src/auth/jwt.rs" }).first()).toBeVisible();
  await found.filter({ hasText: "verify" }).first().click();
  const file = page.getByRole("region", { name: "Text of src/auth/jwt.rs" });
  await expect(file.locator(".marked").filter({ hasText: "pub fn verify" })).toBeVisible();
  await expect(page).toHaveURL(/line=\d+/);
  await page.reload();
  await expect(file.locator(".marked").first()).toBeVisible();
});

test("definitions and references of a symbol are found by its name", async ({ app }) => {
  const { page } = app;
  await app.open("#/code");
  await page.getByRole("tab", { name: "Symbol" }).click();
  await page.getByLabel("Find a symbol").fill("sign");
  await expect(page.getByRole("list", { name: "1 definition" }).getByRole("link")).toContainText("fn sign");
  const used = page.getByRole("list", { name: /references?$/ }).getByRole("link");
  await expect(used).toHaveCount(2);
  await used.first().click();
  await expect(page.locator(".marked")).toContainText("sign(");
});

test("a name that is selected in a file can be looked up", async ({ app }) => {
  const { page } = app;
  await app.open(`#/code/${encodeURIComponent("src/auth/jwt.rs")}`);
  await page
    .getByRole("region", { name: "Text of src/auth/jwt.rs" })
    .getByText("verify", { exact: false })
    .first()
    .waitFor();
  await page.evaluate(() => {
    const lines = [...document.querySelectorAll(".text")];
    const line = lines.find((one) => one.textContent?.includes("pub fn verify"));
    const walker = document.createTreeWalker(line as Node, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const at = node.textContent?.indexOf("verify") ?? -1;
      if (at < 0) continue;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + "verify".length);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
    }
  });
  await page.getByRole("button", { name: "Look up verify" }).click();
  await expect(page.getByRole("list", { name: "1 definition" })).toBeVisible();
});

test("lines of text are found by a regular expression, and a bad one is explained", async ({ app }) => {
  const { page } = app;
  await app.open("#/code");
  await page.getByRole("tab", { name: "Text" }).click();
  const field = page.getByLabel("Find lines of text");
  await field.fill("def (add|total)");
  await expect(page.getByRole("list", { name: "2 lines" }).getByRole("link").first()).toContainText("def add");
  await field.fill("def (");
  await expect(page.getByRole("alert")).toBeVisible();
  await field.fill("nothing_is_called_that");
  await expect(page.getByText("Nothing in the code says that.")).toBeVisible();
});

test("a file tells who wrote its lines, and why", async ({ page, model }) => {
  const { ".git/HEAD": _, ...own } = files;
  const server = await Server.start({ files: own, model: model.url });
  try {
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...args], {
        cwd: server.project,
      });
    git("init", "-q");
    git("add", "-A");
    git("commit", "-qm", "shop: the first cart\n\nOnly what is needed to sell.");
    // A repository that begins later is seen at the next start.
    await server.kill();
    await server.up();
    server.run("index");
    const app = new App(page, server);
    await app.signIn();
    await app.open(`#/code/${encodeURIComponent("src/cart.py")}`);
    await page.getByRole("button", { name: "Blame" }).click();
    await expect(page.getByTitle("shop: the first cart")).toContainText("Ada");
    await page.getByRole("button", { name: "Log" }).click();
    const log = page.getByRole("region", { name: "Commits of this file" });
    await expect(log).toContainText("Only what is needed to sell.");
  } finally {
    await server.stop();
  }
});

test("a file that is not there is said not to be, and the map leads to files", async ({ app }) => {
  const { page } = app;
  await app.open("#/code/src%2Fgone.rs");
  await expect(page.getByRole("heading", { name: "There is no such file" })).toBeVisible();
  await app.open("#/code");
  await page.getByRole("link", { name: "src/cart.py" }).click();
  await expect(page.getByRole("region", { name: "Text of src/cart.py" })).toContainText("class Cart");
});

test("code has no serious finding of axe-core, light or dark, and fits a phone", async ({ app }) => {
  const { page } = app;
  const place = `#/code/${encodeURIComponent("src/auth/jwt.rs")}?line=9&to=12`;
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await app.open(place);
    await expect(page.locator(".marked").first()).toBeVisible();
    await loaded(page);
    expect(await app.findings(), colorScheme).toEqual([]);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await expect(page.getByLabel("Search the code").first()).toBeVisible();
});
