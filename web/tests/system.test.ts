import { gate } from "./support/model.ts";
import { Server } from "./support/server.ts";
import { App, expect, loaded, test } from "./support/test.ts";

test("running calls are a tree, and a branch of it can be stopped", async ({ app, server }) => {
  const { page } = app;
  const { stream_id } = await server.call<{ stream_id: string }>("echo.count", { to: 1_000_000, delay_ms: 1_000 });
  await app.open("#/system");
  const tree = page.getByRole("tree", { name: "Running calls" });
  const call = tree.getByRole("treeitem").filter({ hasText: "echo.count" });
  await expect(call).toHaveCount(1);
  await call.getByRole("button", { name: "Stop echo.count" }).click();
  await expect(page.getByText("Stopped 1 call")).toBeVisible();
  await expect(call).toHaveCount(0);
  const { items } = await server.call<{ items: { status?: string }[] }>("hub.stream", { stream_id });
  expect(items.at(-1)?.status).toBe("cancelled");
});

test("nested calls stand below the call that made them, and one ends without the other", async ({
  app,
  server,
  model,
}) => {
  const { page } = app;
  const never = gate();
  model.says(
    [{ tool: "agent_delegate", arguments: { name: "librarian", task: "Sort the notes" } }],
    [{ text: "Sorting" }, { wait: never.passed }],
    [{ text: "Unsorted, then." }],
  );
  const { stream_id } = await server.call<{ stream_id: string }>("agent.chat", { message: "Sort the notes" });
  await app.open("#/system");
  const tree = page.getByRole("tree", { name: "Running calls" });
  const at = (level: number, method: string) =>
    tree.locator(`[role=treeitem][aria-level="${level}"]`).filter({ hasText: method });
  await expect(at(1, "agent.chat")).toHaveCount(1);
  await expect(at(2, "agent.delegate")).toHaveCount(1);
  await at(2, "agent.delegate").getByRole("button", { name: "Stop agent.delegate" }).click();
  await expect(tree.getByRole("treeitem").filter({ hasText: "agent.delegate" })).toHaveCount(0);
  never.open();
  // Its caller went on without it.
  await expect
    .poll(async () => {
      const { items } = await server.call<{ items: { status?: string; call_id: string }[] }>("hub.stream", {
        stream_id,
      });
      return items.at(-1)?.status;
    })
    .toBe("complete");
});

test("health is told", async ({ app }) => {
  await app.open("#/system");
  const health = app.page.getByLabel("Health", { exact: true });
  await expect(health).toContainText("Healthy");
  await expect(health).toContainText("Unsaved journal");
});

test("a call that waits is approved, and another denied with a reason", async ({ page, model }) => {
  const server = await Server.start({ model: model.url, config: '[approvals]\nmethods = ["vault.write"]\n' });
  try {
    const app = new App(page, server);
    await app.signIn();
    await app.open("#/system");
    await expect(page.getByText("No pending approvals.")).toBeVisible();
    const ask = (path: string) =>
      server.call("vault.write", { path, body: "# New\n" }).then(
        () => "done",
        (error: Error) => error.message,
      );

    const first = ask("notes/yes.md");
    const question = page.getByRole("region", { name: "Approval of vault.write" });
    await expect(question).toContainText("notes/yes.md");
    expect(await app.findings()).toEqual([]);
    await question.getByRole("button", { name: "Approve" }).click();
    expect(await first).toBe("done");
    await expect(question).toHaveCount(0);

    const second = ask("notes/no.md");
    await expect(question).toContainText("notes/no.md");
    await question.getByLabel("Reason").fill("not now");
    await question.getByRole("button", { name: "Deny" }).click();
    expect(await second).toContain("not now");
    await page.getByRole("button", { name: "Earlier approvals" }).click();
    const earlier = page.getByRole("list", { name: "Earlier approvals" });
    await expect(earlier.getByRole("listitem").filter({ hasText: "denied" })).toContainText("not now");
    await expect(earlier.getByRole("listitem").filter({ hasText: "approved" })).toHaveCount(1);
  } finally {
    await server.stop();
  }
});

test("usage is plotted, with the same numbers in a table", async ({ app, server, model }) => {
  const { page } = app;
  model.says([{ text: "Twenty-four hours." }]);
  const { stream_id } = await server.call<{ stream_id: string }>("agent.chat", {
    message: "How long does a session last?",
  });
  const ended = async () => {
    const { items } = await server.call<{ items: { call_id: string; status?: string }[] }>("hub.stream", {
      stream_id,
      limit: 1_000,
    });
    return items.find((item) => item.call_id === stream_id && item.status)?.status;
  };
  await expect.poll(ended, { timeout: 45_000 }).toBe("complete");
  await app.open("#/system/usage");
  await expect(page.getByLabel("In all", { exact: true })).toContainText("Requests");
  const plot = page.getByRole("application", { name: /^Tokens a day/ });
  await plot.focus();
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("status").filter({ hasText: "written" })).toBeVisible();
  await page.getByText("The same as a table").click();
  const table = page.getByRole("table", { name: "Usage by day" });
  await expect(table.getByRole("row")).toHaveCount(2);
  await page.getByRole("tab", { name: "By model" }).click();
  await expect(page.getByRole("table", { name: "Usage in parts" })).toContainText("test");
});

test("limits and the journal's size are told", async ({ app }) => {
  const { page } = app;
  await app.open("#/system/limits");
  await expect(page.getByRole("meter", { name: /^The journal holds/ })).toBeVisible();
  await expect(page.getByRole("table", { name: "Limits on calls" })).toContainText("per user");
  await expect(page.getByText("Approval timeout")).toBeVisible();
});

test("a token is made, shown once, and revoked", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/system/access");
  await page.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("User").fill("bob");
  await dialog.getByLabel("What it is for").fill("reading");
  await dialog.getByLabel("May").fill("vault:read");
  await dialog.getByRole("button", { name: "Make it" }).click();
  const token = (await dialog.locator(".token code").textContent()) ?? "";
  expect(token.length).toBeGreaterThan(20);
  const projects = () =>
    fetch(`${server.url}/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hub.tokens", params: {} }),
    }).then((response) => response.text());
  expect(await projects()).not.toContain("auth.unauthenticated");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(page.getByText(token)).toHaveCount(0);
  await page.getByRole("button", { name: "Revoke reading" }).click();
  await page.getByRole("dialog", { name: "Revoke this token?" }).getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByText("reading has ended")).toBeVisible();
  expect(await projects()).toContain("auth.unauthenticated");
});

test("tokens stand in the order in which they were made, whatever they are called", async ({ app, server }) => {
  const { page } = app;
  const names = ["zebra", "ant", "mole"].map((name) => `${name}-${Date.now()}`);
  for (const name of names) await server.call("hub.token_create", { user: "carol", name, scopes: ["vault:read"] });
  await app.open("#/system/access");
  const rows = page.getByRole("row").filter({ hasText: "carol" });
  await expect(rows).toHaveCount(names.length);
  for (const [i, name] of names.entries()) await expect(rows.nth(i)).toContainText(name);
});

test("projects are listed, and a folder that is none is refused with a reason", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/system/projects");
  await expect(page.getByRole("table", { name: "Projects" })).toContainText(server.project);
  await page.getByRole("button", { name: "Add a project" }).click();
  const dialog = page.getByRole("dialog", { name: "Add a project" });
  await dialog.getByLabel("Folder").fill("/nowhere/at/all");
  await dialog.getByRole("button", { name: "Add" }).click();
  await expect(dialog.getByRole("alert")).toBeVisible();
});

test("the system has no serious finding of axe-core, light or dark, and fits a phone", async ({ app }) => {
  const { page } = app;
  const places = ["", "/usage", "/limits", "/access", "/projects"].map((part) => `#/system${part}`);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const place of places) {
      await app.open(place);
      await loaded(page);
      expect(await app.findings(), `${place} ${colorScheme}`).toEqual([]);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const place of places) {
    await app.open(place);
    await loaded(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), place).toBeLessThanOrEqual(390);
  }
});
