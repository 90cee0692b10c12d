import { fileURLToPath } from "node:url";
import { type App, expect, test } from "../support/test.ts";

const folder = fileURLToPath(new URL("../../../docs/images/", import.meta.url));

/** One picture in light, one in dark. */
async function shoot(app: App, name: string): Promise<void> {
  for (const scheme of ["light", "dark"] as const) {
    await app.page.emulateMedia({ colorScheme: scheme });
    await app.page.waitForLoadState("networkidle");
    await app.page.screenshot({ path: `${folder}${name}-${scheme}.png` });
  }
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
  test.setTimeout(240_000);
  const { page } = app;
  model.says([{ text: "It sells things." }]);
  await page.getByRole("textbox", { name: "Question" }).fill("What does the shop do?");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article").getByText("It sells things.")).toBeVisible();

  await app.open("#/ask");
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
  await shoot(app, "ask");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: "Close the source" }).click();
  await shoot(app, "ask-phone");
  await page.setViewportSize({ width: 1280, height: 800 });
  await answer.getByRole("link", { name: "Trace" }).click();
  await page.getByRole("treeitem", { name: /vault\.search/ }).click();
  await shoot(app, "trace");
});
