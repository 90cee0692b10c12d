import { gate } from "./support/model.ts";
import { type App, expect, test } from "./support/test.ts";

const WIDTHS = [390, 1024, 1440];
const card = (app: App) => app.page.getByRole("region", { name: /^Approval of/ });

/** Ask something that needs approval, in a new conversation. */
async function ask(app: App, question: string): Promise<void> {
  await app.open("#/ask");
  await app.page.getByRole("textbox", { name: "Question" }).fill(question);
  await app.page.keyboard.press("Enter");
  await expect(card(app)).toBeVisible();
}

async function deny(app: App): Promise<void> {
  await card(app).getByRole("button", { name: "Deny" }).click();
  await expect(card(app)).toHaveCount(0);
}

const change = {
  tool: "vault_write",
  arguments: { path: "notes/sessions.md", body: "# Sessions\n\nA session lasts 12 hours.\n" },
};

test("a pending approval shows in navigation, title and live region of every view", async ({ app, model }) => {
  const { page } = app;
  model.says([change], [{ text: "Not changed." }]);
  await ask(app, "Shorten the sessions");
  await expect(page.getByRole("status").filter({ hasText: "Approval needed:" })).toBeAttached();
  for (const view of ["#/trace", "#/notes", "#/ask"]) {
    await app.open(view);
    await expect(page).toHaveTitle(/^\(1\) /);
    await expect(page.getByRole("link", { name: "System" }).getByText("1 pending approval")).toBeAttached();
  }
  await app.open("#/system");
  await deny(app);
  await expect(page).toHaveTitle(/^System/);
  await expect(page.getByRole("navigation").getByText("pending approval")).toHaveCount(0);
});

test("a pending approval shows a diff of the note, and a new note as added lines", async ({ app, model }) => {
  const created = { tool: "vault_write", arguments: { path: "notes/fresh.md", body: "# Fresh\n\nAll new.\n" } };
  model.says(
    [change],
    [created],
    [{ tool: "vault_delete", arguments: { path: "notes/sessions.md" } }],
    [{ text: "No." }],
  );
  await ask(app, "Change some notes");
  const diff = card(app).getByRole("region");
  await expect(diff.locator(".removed", { hasText: "A session lasts 24 hours." })).toBeVisible();
  await expect(diff.locator(".added", { hasText: "A session lasts 12 hours." })).toBeVisible();
  await expect(card(app)).not.toContainText("\\n");
  await card(app).getByRole("button", { name: "Deny" }).click();
  await expect(card(app).getByText("New note")).toBeVisible();
  await expect(diff.locator(".removed")).toHaveCount(0);
  await expect(diff.locator(".added", { hasText: "All new." })).toBeVisible();
  await card(app).getByRole("button", { name: "Deny" }).click();
  await expect(card(app).getByText("Deletes")).toBeVisible();
  await expect(diff.locator(".added")).toHaveCount(0);
  await deny(app);
});

test("the reason of a denial reaches the model, also from the conversation", async ({ app, model }) => {
  model.says([change], [{ text: "I see." }]);
  await ask(app, "Shorten the sessions, please");
  await card(app).getByLabel("Reason").fill("ask the security team first");
  await deny(app);
  await expect(app.page.getByRole("article").last().getByText("I see.")).toBeVisible();
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("ask the security team first");
});

test("the answers are in view, live and after a reload, in the same order everywhere", async ({ app, model }) => {
  const { page } = app;
  const body = Array.from({ length: 200 }, (_, i) => `Line ${i} of a long note.`).join("\n");
  const text = Array.from({ length: 60 }, (_, i) => ({ text: `Paragraph ${i}.\n\n` }));
  model.says(
    [...text, { tool: "vault_write", arguments: { path: "notes/long.md", body } }],
    [{ text: "Not written." }],
  );
  await ask(app, "Write a long note");
  const order = async () => {
    const buttons = card(app).getByRole("button", { name: /^(Deny|Approve)$/ });
    for (const button of await buttons.all()) await expect(button).toBeInViewport({ ratio: 1 });
    return buttons.allInnerTexts();
  };
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 844 });
    expect(await order(), `${width}`).toEqual(["Deny", "Approve"]);
    await page.reload();
    await expect(card(app)).toBeVisible();
    expect(await order(), `${width}, reloaded`).toEqual(["Deny", "Approve"]);
  }
  await app.open("#/system");
  await expect(card(app)).toBeVisible();
  expect(await order()).toEqual(["Deny", "Approve"]);
  await deny(app);
});

test("axe-core finds nothing serious while an approval is pending", async ({ app, model }) => {
  const { page } = app;
  model.says([change], [{ text: "Not changed." }]);
  await ask(app, "Shorten them again");
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 844 });
      expect(await app.findings(), `${colorScheme} ${width}`).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    }
  }
  await app.open("#/system");
  await expect(card(app)).toBeVisible();
  expect(await app.findings()).toEqual([]);
  await deny(app);
});

test("lists are updated by events, without polling", async ({ app, tab, model }) => {
  const { page } = app;
  await app.open("#/ask");
  await page.waitForLoadState("networkidle");
  const asked: string[] = [];
  page.on("request", (request) => {
    const body = request.postDataJSON() as { method?: string } | null;
    if (body?.method) asked.push(body.method);
  });
  // Another tab asks: this one shows it.
  const middle = gate();
  model.says([{ text: "Working." }, { wait: middle.passed }, { text: " Done." }]);
  const other = await tab();
  const name = `Seen by events ${Date.now()}`;
  await other.page.goto(`${app.server.url}/#/ask`);
  await other.page.getByRole("textbox", { name: "Question" }).fill(name);
  await other.page.keyboard.press("Enter");
  await expect(page.getByRole("complementary", { name: "Conversations" }).getByText(name)).toBeVisible();
  middle.open();
  await expect(other.page.getByRole("article").last()).toHaveAttribute("aria-busy", "false");
  expect(asked.filter((method) => method === "agent.contexts").length).toBeLessThan(6);
});
