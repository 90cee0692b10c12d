import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { files, Server } from "./support/server.ts";
import { type App, test as base, expect } from "./support/test.ts";

/** Rules that would surprise other tests need a server of their own. */
const test = base.extend<object, { server: Server }>({
  server: [
    async ({ model }, use) => {
      const server = await Server.start({ model: model.url, files: { ...files, ...rules } });
      await server.call("echo.say", { text: "one" });
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

const rule = (id: string, condition: string, message: string, head = "") => `[rule]
id = "${id}"
trigger = "on_query_start"
${head}

[condition]
expression = "${condition}"

[action]
type = "notify_self"
message = "${message}"

[[tests]]
name = "a long question"
context = { event = { payload = { question = "What is the meaning of all this?" } } }
expect = { fired = true }
`;

const LONG = "len(context.event.payload.get('question', '')) > 10";
const EVIL = "<img src=x onerror=window.hacked=1>";

const rules: Record<string, string> = {
  ".dodona/rules/long-question.toml": rule(
    "long-question",
    LONG,
    "That is long",
    'name = "Long question"\ndescription = "Tells that a question is long"',
  ),
  ".dodona/rules/toggled.toml": rule("toggled", "True", "Always"),
  ".dodona/rules/evil.toml": rule(
    "evil",
    LONG,
    EVIL,
    `name = "${EVIL}"\ndescription = "${EVIL}<script>window.hacked=1</script>"`,
  ),
  ".dodona/rules/edited.toml": rule("edited", LONG, "As it was"),
  ".dodona/rules/conflict.toml": rule("conflict", LONG, "As it was"),
  ".dodona/rules/broken.toml":
    '[rule]\nid = "broken"\ntrigger = "on_tool_call"\n\n[condition]\nexpression = "contxt.call > 1"\n\n[action]\ntype = "deny"\nmessage = "no"\n',
};

/** Asks something, so that rules have been asked about it. */
async function ask(server: Server, question: string): Promise<void> {
  const events = async () => {
    const { events } = await server.call<{ events: { state: unknown }[] }>("rules.explain", {
      rule: "long-question",
      limit: 100,
    });
    return events.length;
  };
  const before = await events();
  await server.call("hub.subscribe", { method: "agent.chat", params: { message: question }, detached: true });
  await expect.poll(events).toBeGreaterThan(before);
}

const row = (page: Page, name: string) =>
  page.getByRole("table", { name: "Rules" }).getByRole("row").filter({ hasText: name });
const open = (app: App, id: string, query = "") => app.open(`#/rules/rules%2F${id}${query}`);
const editor = (page: Page, file: string) => page.getByRole("textbox", { name: `The text of ${file}` });

test("rules are listed with trigger, state, when and how often they fired", async ({ app, server }) => {
  const { page } = app;
  await ask(server, "How long is a session, and why?");
  await app.open("#/rules");
  const line = row(page, "Long question");
  await expect(line).toContainText("on_query_start");
  await expect(line).toContainText("Tells that a question is long");
  // The switch says that it is on; a second word for it would say nothing more.
  await expect(line.getByRole("switch")).toBeChecked();
  await expect(line).not.toContainText("never");
  await expect(line.getByRole("img", { name: /Fired for you [1-9]\d* times? in the last 14 days/ })).toBeVisible();
  await page.keyboard.press("/");
  await page.getByRole("searchbox", { name: "Find a rule" }).fill("long que");
  await expect(row(page, "Token budget warning")).toHaveCount(0);
  await page.getByRole("searchbox", { name: "Find a rule" }).fill("no such rule");
  await expect(page.getByRole("heading", { name: "No matching rule" })).toBeVisible();
});

test("a rule is switched off and on again, and stays so", async ({ app, server }) => {
  const { page } = app;
  const enabled = async () => (await server.call<{ enabled: boolean }>("rules.show", { rule: "toggled" })).enabled;
  await app.open("#/rules");
  const button = page.getByRole("switch", { name: "toggled is on" });
  await expect(button).toHaveAttribute("aria-checked", "true");
  await button.click();
  await expect(button).toHaveAttribute("aria-checked", "false");
  await expect.poll(enabled).toBe(false);
  await page.reload();
  await expect(button).toHaveAttribute("aria-checked", "false");
  await button.press("Space");
  await expect(button).toHaveAttribute("aria-checked", "true");
  await expect.poll(enabled).toBe(true);
});

test("a core rule says why it cannot be switched off", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/rules");
  await expect(page.getByRole("switch", { name: "token-budget-warning is on" })).toHaveCount(0);
  await page.getByRole("button", { name: /token-budget-warning is a core rule/ }).click();
  await expect(page.getByText("token-budget-warning is a core rule", { exact: true })).toBeVisible();
  await expect(page.getByText("cannot be switched off", { exact: false }).first()).toBeVisible();
  await open(app, "token-budget-warning");
  await expect(page.getByText("cannot be replaced", { exact: false })).toBeVisible();
  await expect(page.getByRole("button", { name: /^Edit/ })).toHaveCount(0);
  await expect(server.call("rules.disable", { rule: "token-budget-warning" })).rejects.toThrow("core rule");
});

test("a broken file is told of, and its problem stands at its line until it is mended", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/rules");
  const told = page.getByRole("region", { name: "Files with problems" });
  await expect(told).toContainText("1 file does not run as it is");
  await told.getByRole("link", { name: "broken.toml:6" }).click();
  await expect(page.getByText("No rule runs from this file until it is mended.")).toBeVisible();
  const problems = page.getByRole("list", { name: "Problems" });
  const problem = problems.getByRole("button", { name: /^6:\d+/ });
  await expect(problem).toContainText("contxt");
  await expect(page.getByRole("button", { name: "Save" })).toBeDisabled();
  await problem.click();
  await expect(editor(page, "broken.toml")).toBeFocused();
  await editor(page, "broken.toml").fill(
    (await editor(page, "broken.toml").inputValue()).replace("contxt.call > 1", "context.call.tool_name == 'none'"),
  );
  await expect(problems).toHaveCount(0);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/rules%2Fbroken$/);
  expect(readFileSync(join(server.project, ".dodona/rules/broken.toml"), "utf8")).toContain(
    "context.call.tool_name == 'none'",
  );
});

test("a problem of a file is shown in its source, at its line", async ({ app, server }) => {
  const { page } = app;
  server.write(".dodona/rules/doubtful.toml", rule("doubtful", LONG, "Hm").replace("fired = true", "fired = false"));
  await expect
    .poll(async () =>
      (await server.call<{ problems: { path: string }[] }>("rules.check")).problems.some(({ path }) =>
        path.includes("doubtful"),
      ),
    )
    .toBe(true);
  await open(app, "doubtful");
  const source = page.getByRole("region", { name: "The text of the rule" });
  await expect(source.getByRole("note")).toContainText("a long question");
  await page.getByRole("tab", { name: "Tests" }).click();
  await expect(page.getByText("1 test fails")).toBeVisible();
});

test("a past evaluation is explained term by term", async ({ app, server }) => {
  const { page } = app;
  await ask(server, "Short?");
  await ask(server, "How long is a session, and why?");
  await open(app, "long-question", "?tab=explain");
  const events = page.getByRole("listbox", { name: /evaluations?, newest first/ });
  await expect(events.getByRole("option").first()).toContainText("fired");
  const tree = page.getByRole("tree", { name: "The condition, term by term" });
  await expect(tree.getByRole("treeitem").first()).toContainText("True");
  await expect(tree.getByRole("treeitem").filter({ hasText: "get('question', '')" }).last()).toContainText(
    "How long is a session",
  );
  await expect(page.getByRole("article", { name: "Evaluation" })).toContainText("That is long");
  // Evaluations that fired come first; the others are a click away.
  await expect(events.getByRole("option").filter({ hasText: "not fired" })).toHaveCount(0);
  await page.getByRole("button", { name: /^Not fired/ }).click();
  const short = events.getByRole("option").filter({ hasText: "not fired" }).first();
  await short.click();
  await expect(short).toHaveAttribute("aria-selected", "true");
  await expect(tree.getByRole("treeitem").first()).toContainText("False");
  await expect(page.getByRole("article", { name: "Evaluation" })).toContainText("its condition is false");
  await page.reload();
  await expect(tree.getByRole("treeitem").first()).toContainText("False");
});

test("a rule is edited, tested, backtested and only then saved", async ({ app, server }) => {
  const { page } = app;
  await ask(server, "How long is a session, and why?");
  await open(app, "edited");
  await page.getByRole("heading", { name: "edited", level: 2 }).waitFor();
  await page.keyboard.press("e");
  const text = editor(page, "edited.toml");
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await expect(page.getByRole("button", { name: "Save" })).toBeDisabled();

  const before = await text.inputValue();
  await text.fill(before.replace("> 10", "> 1000"));
  await expect(page.getByText("Valid; one test fails")).toBeVisible();
  await expect(page.getByText("1 test fails")).toBeVisible();

  await text.fill(before.replace("As it was", "As it is now"));
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await page.keyboard.press("ControlOrMeta+b");
  const numbers = page.getByRole("group", { name: "Before and after" });
  await expect(numbers).toContainText(/[1-9]\d* reworded/);
  await expect(page.getByText("Before: As it was").first()).toBeVisible();
  await expect(page.getByText("After: As it is now").first()).toBeVisible();

  await page.getByRole("tab", { name: "Changes" }).click();
  await expect(page.getByRole("region", { name: "Changes" })).toContainText('added: message = "As it is now"');
  const file = join(server.project, ".dodona/rules/edited.toml");
  expect(readFileSync(file, "utf8"), "nothing is saved so far").toBe(before);

  await text.focus();
  await page.keyboard.press("ControlOrMeta+s");
  await expect(page.getByText("edited.toml is saved and in use")).toBeVisible();
  await expect(page.getByRole("region", { name: "The text of the rule" })).toContainText("As it is now");
  expect(readFileSync(file, "utf8")).toBe(before.replace("As it was", "As it is now"));
});

test("a change by somebody else is not overwritten", async ({ app, server }) => {
  const { page } = app;
  await open(app, "conflict", "?edit=yes");
  const text = editor(page, "conflict.toml");
  await text.fill((await text.inputValue()).replace("As it was", "Mine"));
  const theirs = rule("conflict", LONG, "Theirs");
  server.write(".dodona/rules/conflict.toml", theirs);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "Not saved" })).toContainText("has changed since it was read");
  await expect(text).toHaveValue(/Mine/);
  expect(readFileSync(join(server.project, ".dodona/rules/conflict.toml"), "utf8")).toBe(theirs);
});

test("a bundled rule is edited as a copy that takes its place", async ({ app, server }) => {
  const { page } = app;
  await open(app, "large-result-hint");
  await page.getByRole("button", { name: "Edit a copy" }).click();
  await expect(page.getByText("to replace it", { exact: false })).toBeVisible();
  await expect(page.getByText(/^Valid/)).toBeVisible();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("large-result-hint.toml is saved and in use")).toBeVisible();
  await expect(page.getByText("yours", { exact: true })).toBeVisible();
  expect(readFileSync(join(server.home, "config/rules/large-result-hint.toml"), "utf8")).toContain("large-result-hint");
});

test("a new rule begins with a template that works", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/rules");
  await page.getByRole("table", { name: "Rules" }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("textbox", { name: "Id" }).fill("No Writes");
  await page.getByRole("button", { name: "Start from a template" }).click();
  await expect(page.getByRole("alert")).toContainText("Lower-case letters");
  await page.getByRole("textbox", { name: "Id" }).fill("no-writes");
  await page.getByRole("combobox", { name: "Trigger" }).selectOption("on_tool_call");
  await page.getByRole("button", { name: "Start from a template" }).click();
  await expect(page.getByText("All 2 tests pass")).toBeVisible();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/rules%2Fno-writes$/);
  expect(readFileSync(join(server.project, ".dodona/rules/no-writes.toml"), "utf8")).toContain('id = "no-writes"');
});

test("the log has what a rule did, and leads to why", async ({ app, server }) => {
  const { page } = app;
  await ask(server, "How long is a session, and why?");
  await open(app, "long-question", "?tab=log");
  const log = page.getByRole("table", { name: "What the rule did" });
  await expect(log.getByRole("row").nth(1)).toContainText("That is long");
  await log.getByRole("link", { name: "Explain" }).first().click();
  await expect(page.getByText("Only query", { exact: false })).toBeVisible();
});

test("no markup in names and messages of rules becomes markup", async ({ app, server }) => {
  const { page } = app;
  await ask(server, "How long is a session, and why?");
  for (const address of [
    "#/rules",
    "#/rules/rules%2Fevil",
    "#/rules/rules%2Fevil?tab=log",
    "#/rules/rules%2Fevil?tab=explain",
    "#/rules/rules%2Fevil?edit=yes",
  ]) {
    await app.open(address);
    await expect(page.getByText(EVIL, { exact: false }).first()).toBeVisible();
    expect(await page.locator("main img, main script").count(), address).toBe(0);
    expect(await page.evaluate("window.hacked"), address).toBeUndefined();
  }
});

test("what is not there, and what fails, is told", async ({ app }) => {
  const { page } = app;
  await open(app, "no-such-rule");
  await expect(page.getByRole("alert").first()).toContainText(/rule .*rules\/no-such-rule.* not found/);
  await app.open("#/rules/file?path=%2Fetc%2Fpasswd");
  await expect(page.getByRole("alert").first()).toContainText("is not a rule file");
  await open(app, "repeated-failure-warning", "?tab=explain");
  await expect(page.getByRole("heading", { name: "Not evaluated yet" })).toBeVisible();
});

test("axe-core finds nothing serious in rules, light or dark, and nothing is wider than a phone", async ({
  app,
  server,
}) => {
  const { page } = app;
  await ask(server, "How long is a session, and why?");
  const places: [string, string | RegExp][] = [
    ["#/rules/rules%2Flong-question", "Tells that a question is long"],
    ["#/rules/rules%2Flong-question?tab=explain", "its condition is true"],
    ["#/rules/rules%2Flong-question?tab=log", "Took"],
    ["#/rules/rules%2Flong-question?tab=tests", "The test passes"],
    ["#/rules/rules%2Flong-question?edit=yes", "Valid, tests pass"],
    ["#/rules/new", "Start from a template"],
  ];
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [address, shown] of places) {
      await app.open(address);
      await expect(page.getByText(shown).first()).toBeVisible();
      expect(await app.findings(), `${address} ${scheme}`).toEqual([]);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [address, shown] of [["#/rules", "Long question"] as const, ...places]) {
    await app.open(address);
    await expect(page.getByText(shown).first()).toBeAttached();
    expect(await page.evaluate(() => document.documentElement.scrollWidth), address).toBeLessThanOrEqual(390);
  }
});

test("evaluations of a tool rule name the tool, and can be filtered by it", async ({ app, server, model }) => {
  const { page } = app;
  const text = `[rule]
id = "slow-tools"
trigger = "on_tool_complete"
[condition]
expression = "context.result.tool_name == 'vault_list'"
[action]
type = "log"
message = "listed"
`;
  const saved = await server.call<{ version: string }>("rules.write", { scope: "user", file: "slow-tools.toml", text });
  model.says(
    [{ tool: "vault_search", arguments: { query: "sessions" } }],
    [{ tool: "vault_list", arguments: {} }],
    [{ text: "Listed." }],
  );
  await app.open("#/ask");
  await page.getByRole("textbox", { name: "Question" }).fill("List the notes, please");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article").last().getByText("Listed.")).toBeVisible();
  await open(app, "slow-tools", "?tab=explain");
  const events = page.getByRole("listbox", { name: /evaluations?, newest first/ });
  await expect(events.getByRole("option")).toHaveCount(1);
  await expect(events.getByRole("option")).toContainText("vault_list");
  await page.getByRole("button", { name: /^All/ }).click();
  await page.getByLabel("Tool", { exact: true }).selectOption("vault_search");
  await expect(events.getByRole("option").first()).toContainText("vault_search");
  await expect(events.getByRole("option").filter({ hasText: "vault_list" })).toHaveCount(0);

  // The sample test fits the trigger: it is accepted as it is.
  await page.getByRole("tab", { name: "Tests" }).click();
  const sample = await page.locator(".sample pre").innerText();
  expect(sample).toContain("result = { tool_name =");
  const { tests } = await server.call<{ tests: { failure?: string }[] }>("rules.test", {
    texts: [{ path: "slow-tools.toml", text: `${text.replace("'vault_list'", "'vault_search'")}\n${sample}\n` }],
  });
  expect(tests.map((test) => test.failure ?? null)).toEqual([null]);
  await server.call("rules.delete", { scope: "user", file: "slow-tools.toml", if_version: saved.version });
});
