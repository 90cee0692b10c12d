import { expect, test } from "./support/test.ts";

const rule = (id: string, level: string, message: string) => `[rule]
id = "${id}"
trigger = "on_query_start"
[condition]
expression = "True"
[action]
type = "log"
level = "${level}"
message = "${message}"
`;

test("lines that rules log are shown with time, level and rule, and can be filtered", async ({
  app,
  model,
  server,
}) => {
  const write = (id: string, level: string, message: string) =>
    server.call("rules.write", { scope: "user", file: `${id}.toml`, text: rule(id, level, message) });
  await write("note-question", "info", "asked by {{ context.user.id }}");
  await write("warn-question", "warning", "<b>careful</b>");
  model.says([{ text: "Yes." }]);
  await app.open("#/ask");
  await app.page.getByRole("textbox", { name: "Question" }).fill("Is it so?");
  await app.page.keyboard.press("Enter");
  await expect(app.page.getByRole("log").getByText("Yes.")).toBeVisible();

  await app.open("#/logs");
  const log = app.page.getByRole("log", { name: "Lines that rules logged" });
  await expect(log.getByText("asked by local")).toBeVisible();
  // What a rule prints is text.
  await expect(log.getByText("<b>careful</b>")).toBeVisible();
  await expect(log.locator("time").first()).toBeVisible();
  expect(await app.findings()).toEqual([]);

  await app.page.getByLabel("Level").selectOption("warning");
  await expect(log.getByText("asked by local")).toBeHidden();
  await expect(log.getByText("<b>careful</b>")).toBeVisible();
  await expect(app.page).toHaveURL(/level=warning/);

  await app.open("#/logs");
  await log.getByRole("button", { name: "note-question" }).first().click();
  await expect(log.getByText("<b>careful</b>")).toBeHidden();
  await app.page.reload();
  await expect(log.getByText("asked by local")).toBeVisible();
  await expect(log.getByText("<b>careful</b>")).toBeHidden();
  await app.page.getByRole("button", { name: "show all" }).click();
  await expect(log.getByText("<b>careful</b>")).toBeVisible();
});
