import { gate } from "./support/model.ts";
import { type App, expect, test } from "./support/test.ts";

async function ask(app: App, question: string): Promise<void> {
  await app.open("#/ask");
  await app.page.getByRole("textbox", { name: "Question" }).fill(question);
  await app.page.keyboard.press("Enter");
}

test("the trace of an answer shows calls, times, tokens, rules and events", async ({ app, model }) => {
  const { page } = app;
  model.says([{ tool: "vault_search", arguments: { query: "refresh tokens" } }], [{ text: "Dropped [1]." }]);
  await ask(app, "Why were refresh tokens dropped?");
  await expect(page.getByRole("article").getByText(/^Dropped/)).toBeVisible();
  await page.getByRole("article").getByRole("link", { name: "Trace" }).click();
  const tree = page.getByRole("tree", { name: "Calls" });
  await expect(tree.getByRole("treeitem", { name: /agent\.chat/ })).toBeVisible();
  await expect(tree.getByRole("treeitem", { name: /turn 2 · test/ })).toBeVisible();
  await expect(tree.getByText("agent.vault")).toBeVisible();
  await expect(tree.getByRole("treeitem", { name: /turn 2 · test/ })).toContainText("$0.0048");
  // That a citation holds is checked by a call that is no tool: only its items tell what it was.
  await expect(tree.getByRole("treeitem", { name: /search\.resolve/ })).toBeVisible();
  const chart = page.getByRole("figure", { name: "Flame chart" });
  await expect(chart.getByRole("button", { name: /^vault\.search, / })).toBeVisible();
  await expect(page.getByText("2.6k", { exact: true })).toBeVisible();
  expect(await app.findings()).toEqual([]);

  // A node opens its items, by keyboard too.
  await tree.getByRole("treeitem", { name: /vault\.search/ }).click();
  const detail = page.getByRole("complementary", { name: "Details" });
  await expect(detail.getByText("Passages", { exact: true })).toBeVisible();
  await expect(detail.getByText('"query": "refresh tokens"').first()).toBeVisible();
  await page.keyboard.press("ArrowUp");
  await expect(detail.getByRole("heading", { name: /turn 1/ })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(detail).toBeHidden();

  await page.getByRole("tab", { name: /Rules/ }).click();
  await expect(page.getByText("rules/query-start-log")).toBeVisible();
  await expect(page.getByText("fired").first()).toBeVisible();
  await page.getByRole("tab", { name: /Hooks/ }).click();
  await expect(page.getByText("QUERY_RECEIVED").first()).toBeVisible();
  await page.getByRole("tab", { name: /Events/ }).click();
  await expect(page.getByText("tool.call.success").first()).toBeVisible();
  expect(await app.findings()).toEqual([]);
});

test("a query is watched as it happens, and a part of it can be cancelled", async ({ app, model }) => {
  const { page } = app;
  const never = gate();
  model.says(
    [{ tool: "agent_delegate", arguments: { name: "librarian", task: "Put the notes in order" } }],
    [{ text: "Working on it" }, { wait: never.passed }],
    [{ text: "Without the librarian, then." }],
  );
  await ask(app, "Let somebody put the notes in order");
  await expect(page.getByText("agent.delegate")).toBeVisible();
  await page.getByRole("link", { name: "Trace" }).first().click();
  await page.getByRole("row", { name: /Let somebody put the notes in order/ }).click();
  const delegate = page.getByRole("treeitem", { name: /agent\.delegate/ });
  await expect(delegate.getByText("running")).toBeVisible();
  await delegate.click();
  const detail = page.getByRole("complementary", { name: "Details" });
  await detail.getByRole("button", { name: "Cancel" }).click();
  await expect(delegate.getByText("cancelled")).toBeVisible();
  never.open();
  // The rest goes on: only that part was stopped.
  await expect(page.getByText("complete", { exact: true })).toBeVisible();
});

test("a turn shows its prompt and its completion, and what changed since the turn before", async ({ app, model }) => {
  const { page } = app;
  model.says(
    [{ text: "I look it up." }, { tool: "vault_search", arguments: { query: "refresh tokens" } }],
    [{ text: "They were dropped in March." }],
  );
  await ask(app, "When were the refresh tokens dropped?");
  await expect(page.getByRole("article").getByText("They were dropped in March.")).toBeVisible();
  await page.getByRole("article").getByRole("link", { name: "Trace" }).click();
  await page.getByRole("treeitem", { name: /turn 1/ }).click();
  const detail = page.getByRole("complementary", { name: "Details" });
  const prompt = detail.getByRole("region", { name: "Prompt" });
  await expect(detail.getByRole("region", { name: "Completion" })).toContainText("I look it up.");
  await expect(detail.getByRole("region", { name: "Completion" })).toContainText("vault_search");
  await expect(prompt).toContainText("When were the refresh tokens dropped?");
  // The system prompt is folded.
  const system = prompt.locator("details").first();
  await expect(system.locator("pre")).toBeHidden();
  await system.locator("summary").click();
  const shown = (await system.locator("pre").textContent()) ?? "";
  const sent = model.requests.at(-2)?.messages.find((message) => message.role === "system")?.content ?? "";
  expect(shown.length).toBeGreaterThan(100);
  expect(sent).toContain(shown.trim().slice(0, 200));

  await page.getByRole("treeitem", { name: /turn 2/ }).click();
  await expect(detail.getByRole("region", { name: "Completion" })).toContainText("They were dropped in March.");
  await prompt.getByLabel("Only changes since turn 1").check();
  const diff = prompt.getByRole("region", { name: "Changes since turn 1" });
  await expect(diff.locator(".added").filter({ hasText: "I look it up." })).toBeVisible();
  await expect(diff.locator(".removed")).toHaveCount(0);
  expect(await app.findings()).toEqual([]);
});

test("secrets in a prompt are redacted", async ({ app, model }) => {
  const { page } = app;
  const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;
  model.says([{ text: "Noted." }]);
  await ask(app, `My key is ${secret}, is it safe?`);
  await expect(page.getByRole("article").getByText("Noted.")).toBeVisible();
  await page.getByRole("article").getByRole("link", { name: "Trace" }).click();
  await page.getByRole("treeitem", { name: /turn 1/ }).click();
  const prompt = page.getByRole("region", { name: "Prompt" });
  await expect(prompt).toContainText("is it safe?");
  expect(await page.content()).not.toContain(secret);
});

test("a call is copied as JSON, and the time before the first turn has a name", async ({ app, context, model }) => {
  const { page } = app;
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  model.says([{ tool: "vault_list", arguments: {} }], [{ text: "Some." }]);
  await ask(app, "How many notes are there?");
  await expect(page.getByRole("article").getByText("Some.")).toBeVisible();
  await page.getByRole("article").getByRole("link", { name: "Trace" }).click();
  await page.getByRole("treeitem", { name: /vault\.list/ }).click();
  const detail = page.getByRole("complementary", { name: "Details" });
  await detail.getByRole("button", { name: "Copy as JSON" }).click();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(async () => (JSON.parse((await copied()) || "{}") as { label?: string }).label).toBe("vault.list");
  // Everything that took long enough to be seen is attributed.
  const tree = page.getByRole("tree", { name: "Calls" });
  await expect(tree.getByRole("treeitem", { name: /prepare the first request/ })).toBeVisible();
});

test("questions are filtered, and two are compared", async ({ app, model }) => {
  const { page } = app;
  const mark = `m${Date.now()}`;
  model.says([{ text: "The answer is blue." }], [{ text: "The answer is red." }]);
  for (const question of [`First ${mark}?`, `Second ${mark}?`]) {
    await ask(app, question);
    await expect(page.getByRole("article").last()).toHaveAttribute("aria-busy", "false");
  }
  await app.open("#/trace");
  await page.getByRole("searchbox", { name: "Filter questions" }).fill(mark);
  const rows = page.getByRole("table", { name: "Questions" }).getByRole("row").filter({ hasText: mark });
  await expect(rows).toHaveCount(2);
  await page.getByLabel("State").selectOption("complete");
  await expect(rows).toHaveCount(2);
  await page.getByRole("button", { name: `Compare First ${mark}?` }).click();
  await page.getByRole("button", { name: `Compare with Second ${mark}?` }).click();
  await expect(page.getByRole("table", { name: "Comparison" })).toContainText("Input tokens");
  const answers = page.getByRole("region", { name: "Differences of the answers" });
  await expect(answers.locator(".removed")).toContainText("blue");
  await expect(answers.locator(".added")).toContainText("red");
  expect(await app.findings()).toEqual([]);
});
