import { gate } from "./support/model.ts";
import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

/** What each view says where there is nothing, and what it is called. */
const nothing: [string, string][] = [
  ["#/ask", "No conversations yet"],
  ["#/trace", "No questions yet"],
  ["#/notes", "There are no notes yet"],
  ["#/notes?show=graph", "There are no notes yet"],
  ["#/notes?show=tags", "No note has a tag"],
  ["#/threads", "There are no threads yet"],
  ["#/code", "There is no code here"],
  ["#/system", "No running calls"],
  ["#/system/usage", "No model was asked in this time"],
];

test("where there is nothing, a view says so, and what would be there", async ({ page }) => {
  const server = await Server.start({ files: { ".git/HEAD": "ref: refs/heads/main\n" } });
  try {
    const app = new App(page, server);
    await app.signIn();
    for (const [place, words] of nothing) {
      await app.open(place);
      await expect(page.getByRole("main").getByText(words).first(), place).toBeVisible();
    }
    expect(app.errors).toEqual([]);
  } finally {
    await server.stop();
  }
});

const VIEWS = ["ask", "trace", "notes", "threads", "code", "rules", "plugins", "system"];

test("while something is loaded a view says so, and where it fails why, with a way to try again", async ({ app }) => {
  const { page } = app;
  for (const view of VIEWS) {
    const held = gate();
    let broken = true;
    // The network in the hands of the test: first it is slow, then the server fails, then all is well.
    await page.route("**/rpc", async (route) => {
      const { id, method } = route.request().postDataJSON() as { id: number; method: string };
      if (method === "hub.projects") return route.fallback();
      await held.passed;
      const error = { code: -32603, message: "The disk is full", data: { code: "hub.storage" } };
      return broken ? route.fulfill({ json: { jsonrpc: "2.0", id, error } }) : route.fallback();
    });
    await page.goto("about:blank");
    await app.open(`#/${view}`);
    const main = page.getByRole("main");
    await expect(main.getByRole("status").first(), `${view} loads`).toBeVisible();
    held.open();
    const told = main.getByRole("alert").filter({ hasText: "The disk is full" }).first();
    await expect(told, `${view} fails`).toBeVisible();
    broken = false;
    await told.getByRole("button", { name: "Try again" }).click();
    await expect(told, `${view} is back`).toHaveCount(0);
    await page.unrouteAll({ behavior: "wait" });
  }
});
