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
