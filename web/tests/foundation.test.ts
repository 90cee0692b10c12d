import { Server } from "./support/server.ts";
import { App, expect, test } from "./support/test.ts";

test("a link signs a browser in, once", async ({ page, browser, server }) => {
  const link = server.link();
  await page.goto(link);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await expect(page).not.toHaveURL(/code=/);

  const other = await browser.newContext();
  const stranger = await other.newPage();
  await stranger.goto(link);
  await expect(stranger.getByRole("heading", { name: "That link is used up" })).toBeVisible();
  await expect(stranger.getByText("dodona open")).toBeVisible();
  await other.close();
});

test("a browser that is not signed in is told what to run", async ({ page, server }) => {
  await page.goto(server.url);
  await expect(page.getByRole("heading", { name: "This browser is not signed in" })).toBeVisible();
  await expect(page.getByText("dodona open")).toBeVisible();
});

test("a session that is revoked ends on the page by itself", async ({ page, server }) => {
  const app = new App(page, server);
  await app.signIn();
  await expect(page.getByText("Connected")).toBeVisible();
  const cookie = (await page.context().cookies()).find((one) => one.name === "dodona_session");
  // `dod_<id>_<secret>`: the id is what names a session.
  const id = cookie?.value.split("_")[1];
  expect(id).toBeDefined();
  await server.call("hub.token_revoke", { id });
  await expect(page.getByRole("heading", { name: "Your session has ended" })).toBeVisible();
});

test("a session that has expired says so, and what to run", async ({ page, context, server }) => {
  const { tokens } = await server.call<{ tokens: { user: string }[] }>("hub.tokens");
  const wanted = { user: tokens[0]?.user, name: `short ${Date.now()}`, scopes: ["*"], expires_in_s: 3 };
  const made = await server.call<{ token: string }>("hub.token_create", wanted);
  await context.addCookies([{ name: "dodona_session", value: made.token, url: server.url }]);
  await page.goto(server.url);
  await expect(page.getByRole("heading", { name: "Your session has expired" })).toBeVisible();
  await expect(page.getByText("dodona open")).toBeVisible();
});

test("the palette finds and runs a command", async ({ app }) => {
  const { page } = app;
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox", { name: "Go to or run" }).fill("trace");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/trace/);
  await expect(page.getByRole("heading", { name: "Trace", level: 1 })).toBeVisible();
});

test("the overview on ? lists the keys, and they work", async ({ app }) => {
  const { page } = app;
  await page.getByRole("main").focus();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(dialog.getByText("Go to Trace")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await page.getByRole("main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await expect(page).toHaveURL(/#\/trace/);
});

test("light and dark can be chosen, and the choice lasts", async ({ app }) => {
  const { page } = app;
  await page.getByRole("button", { name: "Dark colours" }).click();
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.getByRole("button", { name: "Light colours" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
});

test("the keyboard can skip the navigation", async ({ app }) => {
  const { page } = app;
  // Not Ask: there the focus starts in the composer.
  await app.open("#/trace");
  await page.reload();
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Skip to the content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
});

test("the focus goes through the page in the order of reading, and comes back from a dialog", async ({ app }) => {
  const { page } = app;
  await app.open("#/rules");
  await page.getByRole("table", { name: "Rules" }).waitFor();
  await page.reload();
  await page.getByRole("table", { name: "Rules" }).waitFor();
  const seen: string[] = [];
  for (let i = 0; i < 16; i += 1) {
    await page.keyboard.press("Tab");
    seen.push(
      await page.evaluate(() => {
        const at = document.activeElement;
        return at?.getAttribute("aria-label") ?? at?.textContent?.trim() ?? "";
      }),
    );
  }
  const place = (name: RegExp) => seen.findIndex((one) => name.test(one));
  const order = [/^Skip/, /^Find anything/, /^Ask$/, /^Rules$/, /^System$/, /^Keyboard/, /^Find a rule$/, /^New rule$/];
  const places = order.map(place);
  expect(places, seen.join(" | ")).toEqual(places.toSorted((a, b) => a - b));
  expect(places).not.toContain(-1);

  const button = page.getByRole("button", { name: "Keyboard shortcuts" });
  await button.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(button).toBeFocused();
});

test("the policy refuses what was put into the page from elsewhere", async ({ page, server }) => {
  const app = new App(page, server);
  await app.signIn();
  const policy = (await page.reload())?.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toContain("unsafe");
  const refused = page.evaluate(
    () =>
      new Promise<string>((resolve) =>
        document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective)),
      ),
  );
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.setAttribute("nonce", "guessed");
    script.append("window.hacked = 1");
    document.body.append(script);
  });
  expect(await refused).toMatch(/script-src|trusted-types/);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("a server that goes away is told, and the page goes on when it is back", async ({ page }) => {
  const server = await Server.start();
  try {
    const app = new App(page, server);
    await app.signIn();
    await expect(page.getByText("Connected")).toBeVisible();
    await server.kill();
    await expect(page.getByText("Connection lost. Reconnecting…")).toBeVisible();
    await server.up();
    await expect(page.getByText("Connected")).toBeVisible();
  } finally {
    await server.stop();
  }
});

test("the first load is at most 250 kB, compressed", async ({ page, server }) => {
  test.skip(process.env.PAGE_DIST !== undefined, "`PAGE_DIST` is served uncompressed");
  const app = new App(page, server);
  await app.signIn();
  await page.getByRole("main").waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  let bytes = 0;
  session.on("Network.loadingFinished", (event) => {
    bytes += event.encodedDataLength;
  });
  await page.reload({ waitUntil: "networkidle" });
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(250_000);
});

test("axe-core finds nothing serious in any view, in both themes, at three widths", async ({ app }) => {
  const { page } = app;
  const views = await page
    .getByRole("navigation", { name: "Views" })
    .getByRole("link")
    .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
  expect(views.length).toBeGreaterThan(0);
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const view of views) {
        await app.open(view);
        await page.waitForLoadState("networkidle");
        // The title is never squeezed out by what stands beside it.
        await expect(page.getByRole("heading", { level: 1 }).first(), `${view} ${width}`).toBeVisible();
        expect(await app.findings(), `${view} ${scheme} ${width}`).toEqual([]);
      }
    }
  }
});

test("nothing is wider than a phone", async ({ app }) => {
  const { page } = app;
  await page.setViewportSize({ width: 390, height: 844 });
  const views = await page
    .getByRole("navigation", { name: "Views" })
    .getByRole("link")
    .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
  // The thumb reaches every view without scrolling.
  for (const link of await page.getByRole("navigation", { name: "Views" }).getByRole("link").all())
    await expect(link).toBeInViewport({ ratio: 1 });
  for (const view of views) {
    await app.open(view);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width, view).toBeLessThanOrEqual(390);
  }
});
