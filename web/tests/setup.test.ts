import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Model } from "./support/model.ts";
import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

const KEY = "key-0123456789-never-shown";

/** A home in which nothing is set up, and a model server beside it. */
async function fresh(
  page: import("@playwright/test").Page,
  run: (app: App, model: Model) => Promise<void>,
): Promise<void> {
  const model = await Model.start();
  model.models = ["qwen3:8b", "llama3"];
  const server = await Server.start({ env: { OLLAMA_HOST: new URL(model.url).host } });
  try {
    const app = new App(page, server);
    await app.signIn();
    await app.open("#/ask");
    await run(app, model);
    expect(app.errors).toEqual([]);
  } finally {
    await server.stop();
    await model.stop();
  }
}

/** All files below a folder. */
const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test("a model on this machine is found, and used without a restart", async ({ page }) => {
  await fresh(page, async (app, model) => {
    const card = page.getByRole("region", { name: "Connect a model" });
    await expect(card.getByText("No model is configured: answers are quotations")).toBeVisible();
    await expect(card.getByText("Ollama", { exact: true })).toBeVisible();
    await card.getByLabel("Model of Ollama").selectOption("qwen3:8b");
    expect(await app.findings()).toEqual([]);
    model.says([{ text: "yes" }], [{ text: "Answered by the model." }]);
    await card.getByRole("button", { name: "Use Ollama" }).click();
    await expect(page.getByText("is the default model")).toBeVisible();
    await expect(card).toBeHidden();
    await page.getByRole("textbox", { name: "Question" }).fill("Who answers?");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("article").getByText("Answered by the model.")).toBeVisible();
    expect(model.requests.at(-1)?.model).toBe("qwen3:8b");
    // The command line and the next start know it too.
    expect(app.server.run("models", "list")).toMatch(/ollama \(default\)/);
  });
});

test("a key is tested before it is stored, readable by its owner only, and never shown", async ({ page }) => {
  await fresh(page, async (app, model) => {
    const { home } = app.server;
    const answers: string[] = [];
    page.on("response", async (response) => {
      if (response.url().endsWith("/rpc")) answers.push(await response.text().catch(() => ""));
    });
    const card = page.getByRole("region", { name: "Connect a model" });
    await card.getByLabel("Provider").selectOption("Other server with the OpenAI API");
    await card.getByLabel("Model", { exact: false }).last().fill("big-model");
    await card.getByLabel("Address").fill(model.url);
    await card.getByLabel("API key").fill(KEY);
    const use = card.getByRole("button", { name: "Test and use" });
    model.says({ status: 401, message: "wrong key" });
    await use.click();
    await expect(card.getByRole("alert")).toContainText("401");
    expect(existsSync(join(home, "config/keys"))).toBe(false);
    expect(readFileSync(join(home, "config/config.toml"), "utf8")).not.toContain("big-model");

    model.says([{ text: "yes" }], [{ text: "With the key." }]);
    await use.click();
    await expect(card).toBeHidden();
    expect(model.authorizations.at(-1)).toBe(`Bearer ${KEY}`);
    const file = join(home, "config/keys/custom");
    expect(readFileSync(file, "utf8").trim()).toBe(KEY);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await page.getByRole("textbox", { name: "Question" }).fill("Does it work?");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("article").getByText("With the key.")).toBeVisible();
    expect(model.authorizations.at(-1)).toBe(`Bearer ${KEY}`);

    // Nowhere else: not on the page, in no answer of the server, in no other file.
    expect(await page.content()).not.toContain(KEY);
    expect(answers.join("")).not.toContain(KEY);
    const holding = filesBelow(home).filter((path) => readFileSync(path).includes(KEY));
    expect(holding).toEqual([file]);
  });
});

test("suggested questions are about this project, and answered well without a model", async ({ page }) => {
  await fresh(page, async () => {
    const ideas = page.getByRole("list", { name: "Suggested questions" }).getByRole("button");
    await expect(ideas.first()).toBeVisible();
    const questions = await ideas.allInnerTexts();
    expect(questions.length).toBeGreaterThanOrEqual(2);
    const about: [RegExp, string][] = [
      [/Authentication/, "decisions/auth.md"],
      [/Sessions/, "sessions.md"],
      [/Shop/, "index.md"],
    ];
    for (const question of questions) {
      await page.goto(`${new URL(page.url()).origin}/#/ask`);
      await ideas.filter({ hasText: question }).click();
      const answer = page.getByRole("article").last();
      await expect(answer).toHaveAttribute("aria-busy", "false");
      const path = about.find(([name]) => name.test(question))?.[1] ?? "src/";
      await expect(answer.getByRole("list", { name: "Sources" }), question).toContainText(path);
      await expect(answer).not.toContainText("Nothing in this project answers that");
    }
  });
});
