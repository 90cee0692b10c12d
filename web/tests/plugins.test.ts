import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Server } from "./support/server.ts";
import { test as base, expect } from "./support/test.ts";

/** Plugins in a directory need a server of their own. */
const test = base.extend<object, { server: Server }>({
  server: [
    async ({ model }, use) => {
      const server = await Server.start({ model: model.url });
      for (const [path, text] of Object.entries(manifests)) {
        const file = join(server.home, "config/plugins", path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
      }
      await server.call("plugins.reload");
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

const EVIL = "<img src=x onerror=window.hacked=1>";

const manifests: Record<string, string> = {
  "standup/manifest.toml": `[plugin]
id = "standup"
version = "0.2.0"
description = "Reminds of the daily standup"
[capabilities]
uses = ["prompt", "call:vault"]
`,
  "helper/manifest.toml": `[plugin]
id = "helper"
version = "1.0.0"
description = "Has settings ${EVIL}"
[settings.sources]
type = "integer"
default = 10
min = 1
max = 50
description = "How many sources to gather ${EVIL}"
[settings.tone]
type = "string"
default = "calm"
options = ["calm", "cheerful"]
description = "How it speaks"
[settings.loud]
type = "boolean"
default = false
description = "Whether it rings"
`,
  "evil/manifest.toml": `[plugin]
id = "evil"
version = "1.0.0"
description = "x"
[capabilities]
uses = ["net:${EVIL}"]
`,
  "manners/manifest.toml": `[plugin]
id = "manners"
version = "1.0.0"
description = "Adds to the prompt"
[capabilities]
uses = ["prompt"]
[script]
main = "main.luau"
`,
  "manners/main.luau": `dodona.hook("SYSTEM_PROMPT_EXTEND", { name = "manners" }, function()
    return dodona.append("Name the file before you quote it.")
end)
`,
};

interface Info {
  state: string;
  granted: string[];
  settings: Record<string, { value: unknown; own: boolean }>;
}
const info = (server: Server, plugin: string) => server.call<Info>("plugins.info", { plugin });

test("plugins are listed with their states, why, and what to run", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins");
  const table = page.getByRole("table", { name: "Plugins" });
  await expect(
    table.getByRole("row").filter({ has: page.getByRole("link", { name: "vault", exact: true }) }),
  ).toContainText("active");
  const failed = table.getByRole("row").filter({ has: page.getByRole("link", { name: "standup", exact: true }) });
  await expect(failed).toContainText("failed");
  await expect(failed).toContainText("not granted");
  await expect(failed.locator("code")).toHaveText("dodona plugins grant standup prompt call:vault");
  await failed.getByRole("link", { name: "standup" }).click();
  await expect(page.getByRole("heading", { name: /^standup/ })).toBeVisible();
  await expect(page.getByText("Reminds of the daily standup")).toBeVisible();
});

test("a method is called from a form that its schema makes", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins/echo?tab=methods");
  await page.getByRole("navigation", { name: "Methods of echo" }).getByRole("link", { name: "say" }).click();
  await page.getByRole("button", { name: "Call" }).click();
  await expect(page.getByRole("alert")).toContainText("This is needed");
  await page.getByRole("textbox", { name: /text/ }).fill(EVIL);
  await page.getByRole("button", { name: "Call" }).click();
  const tree = page.getByRole("tree", { name: "Result" });
  await expect(tree).toContainText(EVIL);
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await expect(page.getByRole("region", { name: "Result" }).last()).toContainText('"text"');
  expect(await page.locator("main img").count()).toBe(0);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("a method that fails says so, with its code", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins/echo?tab=methods&method=echo.fail");
  await page.getByRole("button", { name: "Call" }).click();
  await expect(page.getByRole("alert")).toContainText("echo.fail did not work");
});

test("a streaming method shows its items as they come, and can be stopped", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins/echo?tab=methods&method=echo.count");
  await page.getByRole("textbox", { name: /^to/ }).fill("3");
  await page.getByRole("button", { name: "Call" }).click();
  await expect(page.getByText("3 items")).toBeVisible();
  await expect(page.getByText("complete")).toBeVisible();
  await page.getByRole("textbox", { name: /^to/ }).fill("100000");
  await page.getByRole("textbox", { name: /^delay_ms/ }).fill("50");
  await page.getByRole("button", { name: "Call" }).click();
  await expect(page.getByRole("heading", { name: /^[1-9]\d* items?/ })).toBeVisible();
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("heading", { name: /cancelled/ })).toBeVisible();
  await expect(page.getByRole("button", { name: "Call" })).toBeEnabled();
});

test("settings are set, checked and reset", async ({ app, server }) => {
  const { page } = app;
  const settings = async () => (await info(server, "helper")).settings;
  await app.open("#/plugins/helper?tab=settings");
  const sources = page.getByRole("textbox", { name: /^sources/ });
  await expect(sources).toHaveValue("10");
  await sources.fill("99");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("At most 50");
  await sources.fill("12");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await expect(page.getByText("yours", { exact: true })).toBeVisible();
  expect((await settings()).sources?.value).toBe(12);
  await page.getByRole("button", { name: "Reset" }).click();
  await expect(sources).toHaveValue("10");
  await page.getByRole("combobox", { name: /^tone/ }).selectOption("cheerful");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await expect.poll(async () => (await settings()).tone?.value).toBe("cheerful");
  await page.getByRole("switch", { name: "loud" }).click();
  await expect.poll(async () => (await settings()).loud?.value).toBe(true);
  await expect(page.getByRole("switch", { name: "loud" })).toHaveAttribute("aria-checked", "true");
});

test("nobody leaves a changed setting without being asked", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins/helper?tab=settings");
  const sources = page.getByRole("textbox", { name: /^sources/ });
  await sources.fill("13");
  const asked = page.getByRole("dialog", { name: "Leave without saving?" });
  await page.getByRole("tab", { name: "Log" }).click();
  await expect(asked).toContainText("The setting sources");
  await asked.getByRole("button", { name: "Go on editing" }).click();
  await expect(sources).toHaveValue("13");
  await page.getByRole("tab", { name: "Log" }).click();
  await asked.getByRole("button", { name: "Leave without saving" }).click();
  await expect(page).toHaveURL(/tab=log/);
  await page.getByRole("tab", { name: /^Settings/ }).click();
  await expect(sources).not.toHaveValue("13");
});

test("capabilities are granted and revoked, and the plugin follows", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/plugins/standup?tab=access");
  const line = (name: string) =>
    page.getByRole("list", { name: "Capabilities" }).getByRole("listitem").filter({ hasText: name });
  await line("prompt").getByRole("button", { name: "Grant" }).click();
  await expect(line("prompt").getByText("granted", { exact: true })).toBeVisible();
  await line("call:vault").getByRole("button", { name: "Grant" }).click();
  await expect(line("call:vault").getByText("granted", { exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { name: /^standup/ })).toContainText("active");
  expect((await info(server, "standup")).granted.sort()).toEqual(["call:vault", "prompt"]);
  await line("prompt").getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByRole("heading", { name: /^standup/ })).toContainText("failed");
});

test("a plugin is switched off and on, and an essential one says why not", async ({ app, server }) => {
  const { page } = app;
  await app.open("#/plugins");
  const button = page.getByRole("switch", { name: "helper is enabled" });
  await button.click();
  await expect(button).toHaveAttribute("aria-checked", "false");
  await expect.poll(async () => (await info(server, "helper")).state).toBe("disabled");
  await button.click();
  await expect.poll(async () => (await info(server, "helper")).state).toBe("active");
  await page.getByRole("switch", { name: "rules is enabled" }).click();
  await expect(page.getByRole("region", { name: "Messages" })).toContainText("rules");
  await expect(page.getByRole("switch", { name: "rules is enabled" })).toHaveAttribute("aria-checked", "true");
  expect((await info(server, "rules")).state).toBe("active");
});

test("hooks stand in the order in which they run, plugins in that of activation", async ({ app }) => {
  const { page } = app;
  await app.open("#/plugins?tab=hooks");
  const point = page.getByRole("region", { name: "PRE_TOOL_EXECUTE" });
  await expect(point.getByRole("listitem").first()).toContainText("rules");
  await page.getByRole("tab", { name: "Order of activation" }).click();
  await expect(page.getByRole("tabpanel").getByRole("listitem").first()).toBeVisible();
  await page.getByRole("tab", { name: "All" }).click();
  await page.getByRole("button", { name: "Reload" }).click();
  await expect(page.getByText(/^Reloaded:/)).toBeVisible();
});

test("what a plugin's hook changed is told in the trace of a question", async ({ app, server, model }) => {
  const { page } = app;
  await server.call("plugins.grant", { plugin: "manners", capabilities: ["prompt"] });
  await expect.poll(async () => (await info(server, "manners")).state).toBe("active");
  model.says([{ text: "Politely." }]);
  await app.open("#/ask");
  await page.getByRole("textbox", { name: "Question" }).fill("How should one quote?");
  await page.keyboard.press("Enter");
  const answer = page.getByRole("article").last();
  await expect(answer).toHaveAttribute("aria-busy", "false");
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("Name the file before you quote it.");
  await answer.getByRole("link", { name: "Trace" }).click();
  await page.getByRole("tab", { name: /Hooks/ }).click();
  const edit = page.getByRole("listitem").filter({ hasText: "manners" }).filter({ hasText: "edited" });
  await edit.getByText("SYSTEM_PROMPT_EXTEND").click();
  await expect(edit.getByText("Name the file before you quote it.")).toBeVisible();
});

test("no markup in a plugin's log, reason or settings becomes markup", async ({ app }) => {
  const { page } = app;
  for (const address of [
    "#/plugins",
    "#/plugins/evil",
    "#/plugins/evil?tab=log",
    "#/plugins/helper",
    "#/plugins/helper?tab=settings",
  ]) {
    await app.open(address);
    await expect(page.getByText("<img", { exact: false }).first()).toBeVisible();
    expect(await page.locator("main img").count(), address).toBe(0);
    expect(await page.evaluate("window.hacked"), address).toBeUndefined();
  }
});

test("a plugin that is not there is told of", async ({ app }) => {
  await app.open("#/plugins/nobody");
  await expect(app.page.getByRole("alert")).toContainText("The plugin could not be shown");
});

test("axe-core finds nothing serious in plugins, light or dark, and nothing is wider than a phone", async ({ app }) => {
  const { page } = app;
  const places: [string, string][] = [
    ["#/plugins/helper", "Comes from"],
    ["#/plugins/echo?tab=methods&method=echo.count", "Count up to this number."],
    ["#/plugins/helper?tab=settings", "How it speaks"],
    ["#/plugins/standup?tab=access", "call:vault"],
    ["#/plugins/evil?tab=log", "they are kept while the server runs"],
    ["#/plugins?tab=hooks", "PRE_TOOL_EXECUTE"],
  ];
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [address, shown] of places) {
      await app.open(address);
      await expect(page.getByText(shown, { exact: false }).first()).toBeVisible();
      expect(await app.findings(), `${address} ${scheme}`).toEqual([]);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [address, shown] of [["#/plugins", "standup"] as const, ...places]) {
    await app.open(address);
    await expect(page.getByText(shown, { exact: false }).first()).toBeAttached();
    expect(await page.evaluate(() => document.documentElement.scrollWidth), address).toBeLessThanOrEqual(390);
  }
});
