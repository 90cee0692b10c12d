import { gate, Model } from "./support/model.ts";
import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

test("a kill -9 in mid-answer leaves what was said, and says that it was interrupted", async ({ page }) => {
  const model = await Model.start();
  const server = await Server.start({ model: model.url });
  try {
    const app = new App(page, server);
    await app.signIn();
    const never = gate();
    model.says([{ text: "Said before the cut" }, { wait: never.passed }]);
    await app.open("#/ask");
    await page.getByRole("textbox", { name: "Question" }).fill("What will be cut?");
    await page.keyboard.press("Enter");
    const answer = page.getByRole("article").last();
    await expect(answer.getByText("Said before the cut")).toBeVisible();
    await server.kill();
    await expect(page.getByText("Connection lost. Reconnecting…")).toBeVisible();
    await expect(answer.getByText("Said before the cut")).toBeVisible();
    never.open();
    await server.up();
    await expect(answer.getByText("Interrupted", { exact: false })).toBeVisible();
    await expect(answer.getByText("Said before the cut")).toHaveCount(1);
    // The same after a reload, and the conversation goes on.
    await page.reload();
    await expect(answer.getByText("Said before the cut")).toHaveCount(1);
    await expect(answer.getByText("Interrupted", { exact: false })).toBeVisible();
    model.says([{ text: "Now to the end." }]);
    await answer.getByRole("button", { name: "Ask again" }).click();
    await expect(page.getByRole("article").last().getByText("Now to the end.")).toBeVisible();
  } finally {
    await server.stop();
    await model.stop();
  }
});

test("a lost connection in mid-answer loses nothing, and the answer goes on by itself", async ({ app, model }) => {
  const { page } = app;
  // The page's own connection, in the hands of the test.
  const sockets: { close: () => Promise<void> }[] = [];
  await page.routeWebSocket(/\/rpc$/, (socket) => {
    socket.connectToServer();
    sockets.push(socket);
  });
  const middle = gate();
  model.says([{ text: "Before the cut, " }, { wait: middle.passed }, { text: "after the cut." }]);
  await page.reload();
  await page.getByRole("textbox", { name: "Question" }).fill("What is lost?");
  await page.keyboard.press("Enter");
  const answer = page.getByRole("article").last();
  await expect(answer.getByText("Before the cut,")).toBeVisible();
  const before = sockets.length;
  await sockets.at(-1)?.close();
  await expect.poll(() => sockets.length).toBeGreaterThan(before);
  middle.open();
  await expect(answer.getByText("Before the cut, after the cut.")).toBeVisible();
  await expect(answer).toHaveAttribute("aria-busy", "false");
});

test("a conversation of 1 000 messages opens at its end, and can be read to its beginning", async ({
  app,
  server,
  model,
}) => {
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString();
  const recent = Array.from({ length: 1_000 }, (_, n) => ({
    id: `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`,
    role: n % 2 === 0 ? "user" : "assistant",
    content: n % 2 === 0 ? `Question number ${n / 2}?` : `Answer number **${(n - 1) / 2}**.\n\n- one\n- two\n`,
    timestamp: at(n),
    token_count: 10,
  }));
  const context = {
    id: "00000000-0000-7000-8000-00000000ffff",
    user_id: "x",
    project_id: "x",
    session_start: at(0),
    token_budget: 16_000,
    recent_exchanges: recent,
  };
  const made = await server.call<{ context_id: string }>("agent.import", {
    document: { context },
    name: `long ${Date.now()}`,
  });
  await app.open(`#/ask/${made.context_id}`);
  const { page } = app;
  await expect(page.getByText("Question number 499?")).toBeInViewport();
  // Only the end is drawn: that is what keeps it responsive.
  expect(await page.getByRole("article").count()).toBeLessThanOrEqual(40);
  // It goes on: what is typed is asked, and the answer streams in below all the others.
  const middle = gate();
  model.says([{ text: "The thousand and " }, { wait: middle.passed }, { text: "first." }]);
  await page.getByRole("textbox", { name: "Question" }).fill("And one more?");
  await page.keyboard.press("Enter");
  const latest = page.getByRole("article").last();
  await expect(latest.getByText("The thousand and")).toBeInViewport();
  middle.open();
  await expect(latest.getByText("The thousand and first.")).toBeInViewport();
  const log = page.getByRole("log");
  await expect(async () => {
    await log.evaluate((box) => box.scrollTo({ top: 0 }));
    await expect(page.getByText("Question number 0?")).toBeVisible({ timeout: 200 });
  }).toPass({ timeout: 200_000 });
});
