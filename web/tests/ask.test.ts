import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gate, numberOf } from "./support/model.ts";
import { files, Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

/** Asks in a new conversation. */
async function ask(app: App, question: string): Promise<void> {
  await app.open("#/ask");
  await app.page.getByRole("textbox", { name: "Question" }).fill(question);
  await app.page.keyboard.press("Enter");
}

const latest = (app: App) => app.page.getByRole("log").getByRole("article").last();

test("an answer streams in, with its tools, and cites what it found", async ({ app, model }) => {
  const middle = gate();
  model.says([{ tool: "vault_search", arguments: { query: "refresh tokens" } }], (request) => [
    { text: "The refresh flow was **dropped**" },
    { wait: middle.passed },
    { text: ` in March [${numberOf(request, "notes/decisions/auth.md")}].\n\n\`\`\`rust\nfn main() {}\n\`\`\`\n` },
  ]);
  await ask(app, "Why did we drop refresh tokens?");
  const answer = latest(app);
  await expect(answer.getByText("vault.search")).toBeVisible();
  await expect(answer.locator("strong", { hasText: "dropped" })).toBeVisible();
  await expect(answer).toHaveAttribute("aria-busy", "true");
  middle.open();
  await expect(answer).toHaveAttribute("aria-busy", "false");
  await expect(answer.getByText("in March")).toBeVisible();
  await expect(answer.locator(".hl-keyword", { hasText: "fn" })).toBeVisible();

  await answer.getByRole("button", { name: "Source 1" }).click();
  const panel = app.page.getByRole("complementary", { name: "Source" });
  await expect(panel.locator(".marked").first()).toBeVisible();
  await expect(panel.getByText("notes/decisions/auth.md", { exact: false }).first()).toBeVisible();
  expect(await app.findings()).toEqual([]);
  await panel.getByRole("button", { name: "Close the source" }).click();
  await expect(panel).toBeHidden();
});

test("code can be cited, and opens at its lines", async ({ app, model }) => {
  model.says([{ tool: "code_search", arguments: { query: "issue token lifetime" } }], (request) => [
    { text: `It is issued there [${numberOf(request, "src/auth/jwt.rs")}].` },
  ]);
  await ask(app, "Where are tokens issued?");
  const answer = latest(app);
  await expect(answer).toHaveAttribute("aria-busy", "false");
  await answer.getByRole("list", { name: "Sources" }).getByRole("button").first().click();
  const panel = app.page.getByRole("complementary", { name: "Source" });
  await expect(panel.locator(".marked").first()).toBeInViewport();
  await expect(panel.getByText("pub fn issue")).toBeVisible();
});

test("an answer and its code are copied as they were written", async ({ app, context, model }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const text = "Use **this**:\n\n```rust\nfn main() {}\n```";
  model.says([{ text }]);
  await ask(app, "How do I begin?");
  const answer = latest(app);
  await expect(answer).toHaveAttribute("aria-busy", "false");
  const copied = () => app.page.evaluate(() => navigator.clipboard.readText());
  await answer.getByRole("button", { name: "Copy code" }).click();
  await expect.poll(async () => (await copied()).trim()).toBe("fn main() {}");
  await answer.getByRole("button", { name: "Copy the answer" }).click();
  await expect.poll(copied).toBe(text);
});

test("an answer can be stopped, and asked for again", async ({ app, model }) => {
  const never = gate();
  model.says([{ text: "Once upon a time" }, { wait: never.passed }], [{ text: "The end." }]);
  await ask(app, "Tell me a long story");
  const answer = latest(app);
  await expect(answer.getByText("Once upon a time")).toBeVisible();
  await app.page.getByRole("button", { name: "Stop" }).click();
  await expect(answer.getByText("Stopped")).toBeVisible();
  await expect(answer.getByText("Once upon a time")).toBeVisible();
  never.open();
  await answer.getByRole("button", { name: "Ask again" }).click();
  await expect(latest(app).getByText("The end.")).toBeVisible();
});

test("a reload in mid-answer loses nothing, and goes on", async ({ app, model }) => {
  const middle = gate();
  model.says([{ text: "First half, " }, { wait: middle.passed }, { text: "second half." }]);
  await ask(app, "Say something in two halves");
  await expect(latest(app).getByText("First half,")).toBeVisible();
  await app.page.reload();
  await expect(latest(app).getByText("First half,")).toBeVisible();
  await expect(latest(app)).toHaveAttribute("aria-busy", "true");
  middle.open();
  await expect(latest(app).getByText("First half, second half.")).toBeVisible();
  await expect(latest(app)).toHaveAttribute("aria-busy", "false");
});

test("two tabs show the same answer as it comes", async ({ app, tab, model }) => {
  const middle = gate();
  model.says([{ text: "Seen in both, " }, { wait: middle.passed }, { text: "to the end." }]);
  await ask(app, "Say something to both tabs");
  await expect(latest(app).getByText("Seen in both,")).toBeVisible();
  const other = await tab();
  await other.page.goto(app.page.url());
  await expect(latest(other).getByText("Seen in both,")).toBeVisible();
  middle.open();
  for (const one of [app, other]) await expect(latest(one).getByText("Seen in both, to the end.")).toBeVisible();
  // What is asked in one is seen in the other.
  model.says([{ text: "From the other tab." }]);
  await other.page.getByRole("textbox", { name: "Question" }).fill("And again?");
  await other.page.keyboard.press("Enter");
  await expect(latest(app).getByText("From the other tab.")).toBeVisible();
  expect(other.errors).toEqual([]);
});

test("what is said while it works reaches the model", async ({ app, model }) => {
  const middle = gate();
  model.says(
    [{ text: "Looking. " }, { wait: middle.passed }, { tool: "vault_list", arguments: {} }],
    [{ text: "In short: yes." }],
  );
  await ask(app, "Is there a note?");
  await expect(latest(app).getByText("Looking.")).toBeVisible();
  await app.page.getByRole("textbox", { name: "Message to the model" }).fill("Keep it short");
  await app.page.keyboard.press("Enter");
  await expect(latest(app).getByText("Keep it short")).toBeVisible();
  middle.open();
  await expect(latest(app).getByText("In short: yes.")).toBeVisible();
  const seen = model.requests
    .at(-1)
    ?.messages.map((message) => message.content)
    .join("\n");
  expect(seen).toContain("Keep it short");
});

test("a tool that needs approval waits for it, in the answer", async ({ app, server, model }) => {
  model.says(
    [{ tool: "vault_write", arguments: { path: "notes/new.md", body: "# New\n\nWritten.\n" } }],
    [{ text: "It is written." }],
    [{ tool: "vault_delete", arguments: { path: "notes/new.md" } }],
    [{ text: "Then not." }],
  );
  await ask(app, "Write a note");
  const card = app.page.getByRole("region", { name: "Approval of vault.write" });
  await expect(card.getByRole("button", { name: "Approve" })).toBeVisible();
  await expect(latest(app).getByText("Waiting for approval")).toBeVisible();
  expect(await app.findings()).toEqual([]);
  await card.getByRole("button", { name: "Approve" }).click();
  await expect(latest(app).getByText("It is written.")).toBeVisible();
  await expect(latest(app).getByText(/^Approved by \S+$/)).toBeVisible();
  await expect(card).toBeHidden();
  expect(readFileSync(join(server.project, "notes/new.md"), "utf8")).toContain("Written.");

  await app.page.getByRole("textbox", { name: "Question" }).fill("Delete it again");
  await app.page.keyboard.press("Enter");
  const second = app.page.getByRole("region", { name: "Approval of vault.delete" });
  await second.getByRole("button", { name: "Deny" }).click();
  await expect(latest(app).getByText("Then not.")).toBeVisible();
  await expect(latest(app).getByText("denied").first()).toBeVisible();
});

test("what a rule tells the model stands where it was told, and after a reload too", async ({ page, model }) => {
  const told = "Every search so far found something.";
  const rule = `[rule]
id = "after-search"
trigger = "on_tool_complete"

[condition]
expression = "context.result.tool_name == 'vault_search'"

[action]
type = "notify_self"
message = "${told}"
category = "info"
deliver_at = "after_tool"
`;
  const server = await Server.start({ model: model.url, files: { ...files, ".dodona/rules/after-search.toml": rule } });
  try {
    const app = new App(page, server);
    await app.signIn();
    model.says(
      [{ text: "First I look." }, { tool: "vault_search", arguments: { query: "sessions" } }],
      [{ text: "Then I say so [1]." }],
    );
    await ask(app, "How long is a session?");
    const answer = latest(app);
    await expect(answer).toHaveAttribute("aria-busy", "false");
    const inOrder = async () => {
      const notice = answer.getByRole("note");
      await expect(notice).toContainText(told);
      await expect(notice.getByRole("link", { name: "rules/after-search" })).toBeVisible();
      const text = (await answer.innerText()).replaceAll("\n", " ");
      const places = ["First I look.", "vault.search", told, "Then I say so"].map((part) => text.indexOf(part));
      expect(
        places.every((place, i) => place >= 0 && place > (places[i - 1] ?? -1)),
        text,
      ).toBe(true);
    };
    await inOrder();
    // It is what the model read, and nothing else.
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain(told);
    await page.reload();
    await inOrder();
    expect(app.errors).toEqual([]);
  } finally {
    await server.stop();
  }
});

test("a conversation can be forked, and the history leads to both", async ({ app, model }) => {
  model.says([{ text: "Blue." }], [{ text: "Red." }]);
  await ask(app, "Which colour has the sky?");
  await expect(latest(app).getByText("Blue.")).toBeVisible();
  const original = app.page.url();
  await latest(app).getByRole("button", { name: "Fork from here" }).click();
  await expect(app.page).not.toHaveURL(original);
  await expect(latest(app).getByText("Blue.")).toBeVisible();
  await app.page.getByRole("textbox", { name: "Question" }).fill("And at dusk?");
  await app.page.keyboard.press("Enter");
  await expect(latest(app).getByText("Red.")).toBeVisible();
  const history = app.page.getByRole("complementary", { name: "Conversations" });
  await history.getByRole("link", { name: "Which colour has the sky?" }).last().click();
  await expect(app.page).toHaveURL(original);
  await expect(app.page.getByRole("article")).toHaveCount(1);
});

test("the model can be chosen, and tokens and cost are shown", async ({ app, model }) => {
  model.says([{ text: "Counted." }]);
  await ask(app, "What does this cost?");
  const answer = latest(app);
  await expect(answer.getByText("Counted.")).toBeVisible();
  await expect(answer.getByText("1.3k tokens")).toBeVisible();
  await expect(answer.getByText("$0.0048")).toBeVisible();
  await expect(app.page.getByRole("meter")).toBeVisible();
  await app.page.getByRole("combobox", { name: "Model" }).selectOption("offline");
  await app.page.getByRole("textbox", { name: "Question" }).fill("How long does a session last?");
  await app.page.keyboard.press("Enter");
  await expect(latest(app).getByText("offline", { exact: true })).toBeVisible();
});

test("markup in an answer, a note and a tool's output is shown and never obeyed", async ({ app, server, model }) => {
  const attack = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><iframe srcdoc="<script>parent.hacked=1</script>"></iframe>`;
  server.write("notes/evil.md", `# Zanzibar\n\nZanzibar ${attack}\n\n[click](javascript:window.hacked=1)\n`);
  server.run("index");
  const body = `${attack}\n\n[a link](javascript:window.hacked=1) [b](data:text/html,x) ![i](https://example.org/track.png)\n\n<svg onload="window.hacked=1">\n\nSee [1].`;
  model.says([{ tool: "vault_search", arguments: { query: "Zanzibar" } }], [{ text: body }]);
  const asked: string[] = [];
  app.page.on("request", (request) => asked.push(request.url()));
  await ask(app, `What about ${attack}?`);
  const answer = latest(app);
  await expect(answer).toHaveAttribute("aria-busy", "false");
  await expect(answer.getByText("onerror", { exact: false }).first()).toBeVisible();
  expect(await answer.locator("img, script, iframe, svg[onload]").count()).toBe(0);
  expect(await answer.locator("a[href^='javascript'], a[href^='data']").count()).toBe(0);
  await answer.getByRole("button", { name: "Source 1" }).click();
  await expect(
    app.page.getByRole("complementary", { name: "Source" }).getByText("onerror", { exact: false }).first(),
  ).toBeVisible();
  expect(await app.page.evaluate("window.hacked")).toBeUndefined();
  expect(asked.filter((url) => !url.startsWith(server.url))).toEqual([]);
});

test("nothing moves while an answer streams in", async ({ app, model }) => {
  const done = gate();
  const words = Array.from({ length: 60 }, (_, i) => ({
    text: `Sentence number ${i} of an answer that grows. ${i % 6 === 5 ? "\n\n" : ""}`,
  }));
  model.says([...words, { wait: done.passed }, { text: "End." }]);
  await ask(app, "Write a lot");
  await expect(latest(app).getByText("Sentence number 0")).toBeVisible();
  await app.page.evaluate(`
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
    }).observe({ type: "layout-shift" });`);
  await expect(latest(app).getByText("Sentence number 59")).toBeVisible();
  done.open();
  await expect(latest(app)).toHaveAttribute("aria-busy", "false");
  const shifts = (await app.page.evaluate("window.shifts")) as number[];
  expect(shifts.reduce((sum, value) => sum + value, 0)).toBeLessThan(0.02);
});

test("another agent can be asked, and its conversation says so", async ({ app, model, server }) => {
  await server.call("agent.define", {
    agent_id: "scout",
    description: "Finds things in code.",
    system_prompt: "You are {{ agent }}.",
    allowed_tools: ["code_search"],
    replace: true,
  });
  let seen = "";
  model.says((request) => {
    seen = JSON.stringify(request);
    return [{ text: "Found it." }];
  });
  await app.open("#/ask");
  await app.page.getByLabel("Agent").selectOption("scout");
  await app.page.getByRole("textbox", { name: "Question" }).fill("Where is it?");
  await app.page.keyboard.press("Enter");
  await expect(latest(app).getByText("Found it.")).toBeVisible();
  expect(seen).toContain("You are scout.");
  // It belongs to that agent from now on, and both the list and the composer say so.
  await expect(app.page.getByLabel("Agent")).toBeHidden();
  await expect(app.page.getByTitle("Agent of this conversation: scout")).toBeVisible();
  const list = app.page.getByRole("complementary", { name: "Conversations" });
  await expect(list.getByText("scout ·")).toBeVisible();
  expect(await app.findings()).toEqual([]);
});
