import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { gate, type Model } from "../support/model.ts";
import { Server } from "../support/server.ts";
import { type App, test as base, expect, loaded } from "../support/test.ts";
import { shop } from "./shop.ts";

const folder = process.env.SHOTS ?? fileURLToPath(new URL("../../../docs/images/", import.meta.url));

/** `SHOTS_ALL=yes` takes every view, on a desk and a phone: to look at, not for the docs. */
const all = process.env.SHOTS_ALL !== undefined;

const test = base.extend<object, { server: Server }>({
  server: [
    async ({ model }, use) => {
      const server = await Server.start({ model: model.url, files: shop });
      await fill(server, model);
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 240_000 },
  ],
});

/** What people did before the pictures were taken. */
async function fill(server: Server, model: Model): Promise<void> {
  const search = (query: string, text: string) =>
    model.says([{ tool: "vault_search", arguments: { query } }], [{ text }]);
  const questions: [string, string, string][] = [
    ["Who knows how to replace an edge node?", "edge node", "Jonas does; the steps are in the runbook [1]."],
    ["What did we decide about mail?", "mail decision", "Mail goes out once, and a queue remembers it [1]."],
    ["How are prices stored?", "prices integers", "As integers, in the smallest unit of the currency [1]."],
    ["How do I refund an order?", "refund order", "Follow the runbook [1]; Ines approves it."],
  ];
  for (const [message, query, text] of questions) {
    search(query, text);
    const { context_id } = await server.call<{ context_id: string }>("agent.create");
    const { stream_id } = await server.call<{ stream_id: string }>("agent.chat", { message, context_id });
    await expect
      .poll(async () => {
        const { items } = await server.call<{ items: { status?: string; call_id: string }[] }>("hub.stream", {
          stream_id,
        });
        return items.at(-1)?.status;
      })
      .toBe("complete");
  }
  const push = (thread_id: string, entry_type: string, content: string) =>
    server.call("thread.push", { thread_id, entry_type, content });
  await push("search-rework", "research", "The catalogue has 40 000 products; one machine answers in 12 ms.");
  await push("search-rework", "decision", "We stay **without a cluster** until there are ten times as many.");
  await push("mail", "thought", "Bounces are not looked at by anybody.");
  await push("tokens", "thought", "A stolen token is good for a whole day. Is that too long?");
  await push("tokens", "research", "Half of all sessions end within 40 minutes, nine in ten within `4 h`.");
  await push(
    "tokens",
    "insight",
    "A shorter lifetime would be noticed by *one customer in ten*:\n\n- with 4 hours: 10 %\n- with 8 hours: 3 %",
  );
  await push("tokens", "decision", "We try **8 hours** in May, and look at the numbers again. See `src/auth/jwt.rs`.");
  for (const body of ["first\n", "A session lasts 8 hours. Edge nodes keep no state; see [[decisions/auth]].\n"]) {
    await server.call("vault.write", { path: "notes/sessions.md", body: `# Sessions\n\n${body}` });
  }
}

async function settle(page: Page): Promise<void> {
  await loaded(page);
  await page.waitForLoadState("networkidle");
  await page.mouse.move(0, 0);
}

/** One picture in light, one in dark. */
async function shoot(app: App, name: string, phone = all): Promise<void> {
  const { page } = app;
  const desk = page.viewportSize() ?? { width: 1280, height: 800 };
  const sizes = [{ ending: "", size: desk }];
  if (phone) sizes.push({ ending: "-phone", size: { width: 390, height: 844 } });
  if (all) sizes.push({ ending: "-1024", size: { width: 1024, height: 768 } });
  if (all) sizes.push({ ending: "-1440", size: { width: 1440, height: 900 } });
  for (const { ending, size } of sizes) {
    await page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await settle(page);
      await page.screenshot({ path: `${folder}${name}${ending}-${colorScheme}.png` });
    }
  }
  await page.setViewportSize(desk);
}

/** What has no place in the docs. */
async function look(app: App, name: string): Promise<void> {
  if (all) await shoot(app, name);
}

const ANSWER = `Login issues a **24-hour token** and no refresh token [1]. The refresh flow was dropped in March,
because revocation needed a shared store that the edge nodes lack [1].

\`\`\`rust
/// How long a login is good for.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
\`\`\`

What follows from it:

- a stolen token is good for at most a day;
- edge nodes keep no state [2];
- signing out means forgetting the token.
`;

test("Ask and Trace", async ({ app, model }) => {
  const { page } = app;
  await app.open("#/ask");
  await look(app, "welcome");
  model.says(
    [
      { tool: "vault_search", arguments: { query: "refresh tokens" } },
      { tool: "code_search", arguments: { query: "token lifetime" } },
    ],
    [{ text: ANSWER }],
  );
  await page
    .getByRole("textbox", { name: "Question" })
    .fill("How does login work, and why did we drop refresh tokens?");
  await page.keyboard.press("Enter");
  const answer = page.getByRole("article").last();
  await expect(answer).toHaveAttribute("aria-busy", "false");
  await answer.getByRole("button", { name: "Source 1" }).first().click();
  await expect(page.locator(".marked").first()).toBeVisible();
  await shoot(app, "ask", false);
  await page.getByRole("button", { name: "Close the source" }).click();
  await page.setViewportSize({ width: 390, height: 844 });
  await shoot(app, "ask-phone", false);
  await page.setViewportSize({ width: 1280, height: 800 });
  await answer.getByRole("link", { name: "Trace" }).click();
  await page.getByRole("treeitem", { name: /vault\.search/ }).click();
  await shoot(app, "trace");
  await app.open("#/trace");
  await look(app, "trace-list");
});

test("Notes", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes/notes%2Fdecisions%2Fauth.md");
  await expect(page.getByRole("article").getByRole("heading", { name: "Authentication" })).toBeVisible();
  await shoot(app, "notes");
  await app.open("#/notes/notes%2Fdecisions%2Fauth.md?tab=edit");
  await look(app, "notes-edit");
  await app.open("#/notes/notes%2Fsessions.md?tab=history");
  await expect(page.getByRole("region", { name: "What changed" })).toBeVisible();
  await look(app, "notes-history");
  await app.open("#/notes?show=graph");
  await expect(page.locator("[data-layout=done]")).toBeVisible();
  await page.getByRole("application", { name: /^Graph of/ }).focus();
  await page.keyboard.press("ArrowDown");
  await shoot(app, "graph");
});

test("Threads and Code", async ({ app }) => {
  const { page } = app;
  await app.open("#/threads/tokens");
  await expect(page.getByRole("main").getByText("8 hours", { exact: true })).toBeVisible();
  await shoot(app, "threads");
  await app.open("#/code");
  await look(app, "code-map");
  await page.getByRole("searchbox").fill("token lifetime");
  await expect(page.locator("mark").first()).toBeVisible();
  await look(app, "code-search");
  await app.open("#/code/src%2Fauth%2Fjwt.rs?line=9&to=12");
  await expect(page.locator(".marked").first()).toBeVisible();
  await shoot(app, "code");
});

test("Rules", async ({ app }) => {
  const { page } = app;
  await app.open("#/rules");
  await expect(page.getByRole("table", { name: "Rules" })).toBeVisible();
  await shoot(app, "rules");
  await app.open("#/rules/rules%2Fcite-the-decision?tab=explain");
  await expect(page.getByRole("tree").first()).toBeVisible();
  await look(app, "rule-explain");
  await app.open("#/rules/rules%2Fcite-the-decision?edit=yes");
  const text = page.getByRole("textbox", { name: "The text of cite-the-decision.toml" });
  await text.fill((await text.inputValue()).replace("not a note about a meeting", "with its line"));
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await page.keyboard.press("ControlOrMeta+b");
  await expect(page.getByRole("group", { name: "Before and after" })).toBeVisible();
  await page.evaluate(() => document.querySelector("textarea")?.blur());
  await shoot(app, "rule-edit");
});

test("Plugins and System", async ({ app, server, model }) => {
  const { page } = app;
  await app.open("#/plugins");
  await look(app, "plugins-list");
  await app.open("#/plugins?tab=hooks");
  await look(app, "plugins-hooks");
  await app.open("#/plugins/vault?tab=methods&method=vault.search");
  await page.getByLabel("query").first().fill("refresh tokens");
  await page.getByRole("button", { name: "Call" }).click();
  await expect(page.getByText("Passages").first()).toBeVisible();
  await shoot(app, "plugins");

  // Something runs, and something waits for a person.
  const never = gate();
  model.says(
    [{ tool: "agent_delegate", arguments: { name: "librarian", task: "Put the notes in order" } }],
    [{ text: "Working on it" }, { wait: never.passed }],
  );
  await server.call("agent.chat", { message: "Let somebody put the notes in order" });
  const body = "# Mail goes out once\n\nA queue remembers what was sent. A mail that bounced is not sent again.\n";
  model.says([{ tool: "vault_write", arguments: { path: "notes/decisions/mail.md", body } }]);
  const { context_id } = await server.call<{ context_id: string }>("agent.create");
  await server.call("agent.chat", { message: "Write down what we decided about mail", context_id });
  await app.open(`#/ask/${context_id}`);
  await expect(page.getByRole("region", { name: "Approval of vault.write" })).toBeVisible();
  await look(app, "approval");
  await app.open("#/system");
  await expect(page.getByLabel("Health", { exact: true })).toContainText("Healthy");
  await expect(page.getByRole("region", { name: "Approval of vault.write" })).toBeVisible();
  await expect(page.getByRole("treeitem").nth(2)).toBeVisible();
  await shoot(app, "system");
  await app.open("#/system/usage");
  await shoot(app, "usage");
  await app.open("#/system/limits");
  await look(app, "limits");
  never.open();
});
