import type { Page } from "@playwright/test";
import { expect, test } from "./support/test.ts";

const asked = (page: Page) => page.getByRole("dialog", { name: "Leave without saving?" });
const stay = (page: Page) => asked(page).getByRole("button", { name: "Go on editing" }).click();
const leave = (page: Page) => asked(page).getByRole("button", { name: "Leave without saving" }).click();
const view = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true });

test("nobody leaves a changed rule without being asked", async ({ app, server }) => {
  const { page } = app;
  const text = `[rule]\nid = "half-done"\ntrigger = "on_session_end"\n\n[condition]\nexpression = "False"\n\n[action]\ntype = "log"\nmessage = "never"\n`;
  server.write(".dodona/rules/half-done.toml", text);
  await server.call("rules.reload");
  await app.open("#/rules/rules%2Fhalf-done");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const area = page.getByRole("textbox", { name: "The text of half-done.toml" });
  // What is not changed is left at once.
  await view(page, "Notes").click();
  await expect(page).toHaveURL(/#\/notes/);
  await page.goBack();
  await area.fill(text.replace("never", "not yet"));

  await view(page, "Notes").click();
  await expect(asked(page)).toContainText("half-done.toml");
  expect(await app.findings()).toEqual([]);
  await stay(page);
  await expect(page).toHaveURL(/half-done\?edit/);
  await expect(area).toHaveValue(/not yet/);
  // By whichever way: the button of the browser, a key, and the palette.
  await page.goBack();
  await stay(page);
  await expect(page).toHaveURL(/half-done\?edit/);
  await page.getByRole("main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await expect(asked(page)).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(area).toHaveValue(/not yet/);
  await page.getByRole("button", { name: "Cancel" }).click();
  await leave(page);
  await expect(page.getByRole("region", { name: "The text of the rule" })).toContainText("never");
});

test("nobody leaves a changed note without being asked", async ({ app, server }) => {
  const { page } = app;
  server.write("notes/half.md", "# Half\n");
  await app.open("#/notes/notes%2Fhalf.md?tab=edit");
  const area = page.getByLabel("Text of notes/half.md");
  await area.fill("# Half\n\nand half\n");
  await page.getByRole("tab", { name: "History" }).click();
  await expect(asked(page)).toContainText("notes/half.md");
  await stay(page);
  await expect(area).toHaveValue(/and half/);
  await view(page, "Code").click();
  await leave(page);
  await expect(page).toHaveURL(/#\/code/);
  await app.open("#/notes/notes%2Fhalf.md?tab=edit");
  await expect(area).toHaveValue(/^# Half\s*$/);
});

test("a question that is not sent yet is still there after a look at something else, and a reload", async ({ app }) => {
  const { page } = app;
  await app.open("#/ask");
  const composer = page.getByRole("textbox", { name: "Question" });
  await composer.fill("Half a quest");
  await view(page, "Notes").click();
  await expect(page).toHaveURL(/#\/notes/);
  await view(page, "Ask").click();
  await expect(composer).toHaveValue("Half a quest");
  await page.reload();
  await expect(composer).toHaveValue("Half a quest");
});
