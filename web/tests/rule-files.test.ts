import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Server } from "./support/server.ts";
import { type App, expect, test } from "./support/test.ts";

/** A rule that never fires, so that it surprises no other test. */
const quiet = (id: string, condition = 'expression = "False"') => `# Kept as it is.
[rule]
id = "${id}"
trigger = "on_session_end"

[condition]
${condition}

[action]
type = "log"
message = "never"
`;

const open = (app: App, id: string, query = "") => app.open(`#/rules/rules%2F${id}${query}`);
const inProject = (server: Server, file: string) => join(server.project, ".dodona/rules", file);

test("a rule is given another id, and its file follows", async ({ app, server }) => {
  const { page } = app;
  server.write(".dodona/rules/old-name.toml", quiet("old-name"));
  server.write(".dodona/rules/taken.toml", quiet("taken"));
  await server.call("rules.reload");
  await server.call("rules.disable", { rule: "old-name" });
  await open(app, "old-name");
  await page.getByRole("button", { name: "Rename the rule" }).click();
  const dialog = page.getByRole("dialog", { name: "Rename the rule" });
  const id = dialog.getByRole("textbox", { name: "Id" });
  await expect(id).toHaveValue("old-name");
  await id.fill("Not An Id");
  await page.keyboard.press("Enter");
  await expect(dialog.getByRole("alert")).toContainText("Lower-case letters");
  await id.fill("taken");
  await page.keyboard.press("Enter");
  await expect(dialog.getByRole("alert")).toContainText("already");
  await id.fill("new-name");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "new-name", level: 2 })).toBeVisible();
  expect(existsSync(inProject(server, "old-name.toml"))).toBe(false);
  expect(readFileSync(inProject(server, "new-name.toml"), "utf8")).toBe(quiet("new-name"));
  // It was switched off, and stays so.
  await expect(page.getByRole("switch", { name: "new-name is on" })).not.toBeChecked();
});

test("a rule is deleted when somebody has said so twice", async ({ app, server }) => {
  const { page } = app;
  server.write(".dodona/rules/unwanted.toml", quiet("unwanted"));
  await server.call("rules.reload");
  await open(app, "unwanted");
  await page.getByRole("button", { name: "Delete the rule" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete this rule?" });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(existsSync(inProject(server, "unwanted.toml"))).toBe(true);
  await page.getByRole("button", { name: "Delete the rule" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("unwanted.toml is deleted")).toBeVisible();
  await expect(page.getByRole("table", { name: "Rules" })).toBeVisible();
  await expect(page.getByRole("link", { name: "unwanted" })).toHaveCount(0);
  expect(existsSync(inProject(server, "unwanted.toml"))).toBe(false);
});

test("what comes with the program has no button to delete or rename it", async ({ app }) => {
  const { page } = app;
  await open(app, "repeated-failure-warning");
  await expect(page.getByRole("button", { name: "Edit a copy" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Delete the rule" })).toHaveCount(0);
});

test("a rule's script is edited, tested and saved with it", async ({ app, server }) => {
  const { page } = app;
  const tests = '\n[[tests]]\nname = "stays quiet"\nexpect = { fired = false }\n';
  const text = quiet("scripted", 'script = "scripts/quiet.lua"') + tests;
  server.write(".dodona/rules/scripts/quiet.lua", "return false\n");
  server.write(".dodona/rules/scripted.toml", text);
  await server.call("rules.reload");
  await open(app, "scripted", "?edit=yes");
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await page.getByRole("tab", { name: "scripts/quiet.lua" }).click();
  const script = page.getByRole("textbox", { name: "The text of scripts/quiet.lua" });
  await expect(script).toHaveValue("return false\n");

  await script.fill("return (\n");
  await expect(page.getByText("Invalid: one error")).toBeVisible();
  await expect(page.getByText("got <eof>")).toBeVisible();
  await script.fill("return true\n");
  await expect(page.getByText("Valid; one test fails")).toBeVisible();
  await script.fill("return 1 > 2\n");
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await page.getByRole("tab", { name: "Changes" }).click();
  await expect(page.getByRole("region", { name: "Changes to the script" })).toContainText("added: return 1 > 2");
  expect(readFileSync(inProject(server, "scripts/quiet.lua"), "utf8"), "nothing is saved so far").toBe(
    "return false\n",
  );
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("scripted.toml is saved and in use")).toBeVisible();
  expect(readFileSync(inProject(server, "scripts/quiet.lua"), "utf8")).toBe("return 1 > 2\n");
  expect(readFileSync(inProject(server, "scripted.toml"), "utf8")).toBe(text);

  // A script that is named and not there yet is written together with the rule.
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("textbox", { name: "The text of scripted.toml" }).fill(text.replace("quiet.lua", "silent.lua"));
  await page.getByRole("tab", { name: "scripts/silent.lua" }).click();
  await page.getByRole("textbox", { name: "The text of scripts/silent.lua" }).fill("return nil\n");
  await expect(page.getByText("Valid, tests pass")).toBeVisible();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("region", { name: "The script scripts/silent.lua" })).toContainText("return nil");
  expect(readFileSync(inProject(server, "scripts/silent.lua"), "utf8")).toBe("return nil\n");
});
