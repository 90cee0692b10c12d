/**
 * What a test of the page gets:
 *
 *     import { expect, test } from "./support/test.ts";
 *
 *     test("a note can be read", async ({ app }) => {
 *       await app.open("#/notes");
 *       await expect(app.page.getByRole("heading", { name: "Sessions" })).toBeVisible();
 *     });
 *
 * `app` is signed in. `server` and `model` are shared by the tests of a worker; a test that breaks
 * things starts its own with `Server.start`.
 */
import { type BrowserContext, test as base, expect, type Page } from "@playwright/test";
import { axe, type Finding } from "./axe.ts";
import { serveDist } from "./dist.ts";
import { Model } from "./model.ts";
import { Server } from "./server.ts";

export { expect } from "@playwright/test";

export class App {
  /** What went wrong in the browser while a test ran; it must stay empty. */
  readonly errors: string[] = [];

  constructor(
    readonly page: Page,
    readonly server: Server,
  ) {
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("console", (message) => {
      // The policy reports what it refused; a server that is gone is a test's own doing.
      if (message.type() === "error" && !/ERR_CONNECTION|WebSocket|401/.test(message.text()))
        this.errors.push(message.text());
    });
  }

  /** Signs in with a one-time link, as a person would. */
  async signIn(): Promise<void> {
    await this.page.goto(this.server.link());
    // What a redirect leads to is not looked at by `serveDist`.
    if (process.env.PAGE_DIST) {
      await this.page.goto(this.server.url);
      this.errors.length = 0;
    }
    await this.page.getByRole("navigation", { name: "Views" }).waitFor();
  }

  /** Goes to a view: `open("#/rules")`. */
  async open(address: string): Promise<void> {
    await this.page.goto(`${this.server.url}/${address}`);
    await this.page.getByRole("main").waitFor();
  }

  /** Serious findings of axe-core about what is shown now. */
  async findings(): Promise<Finding[]> {
    return axe(this.page);
  }

  async dark(): Promise<void> {
    await this.page.emulateMedia({ colorScheme: "dark" });
  }
}

/** Waits until nothing that is shown is still being loaded. */
export async function loaded(page: Page): Promise<void> {
  await expect(page.getByRole("main").getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
}

interface Shared {
  model: Model;
  server: Server;
}

interface Own {
  app: App;
  /** Another tab of the same browser, signed in. */
  tab: () => Promise<App>;
}

export const test = base.extend<Own, Shared>({
  model: [
    // biome-ignore lint/correctness/noEmptyPattern: that is how Playwright names what a fixture needs
    async ({}, use) => {
      const model = await Model.start();
      await use(model);
      await model.stop();
    },
    { scope: "worker" },
  ],
  server: [
    async ({ model }, use) => {
      const server = await Server.start({ model: model.url });
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  page: async ({ page }, use) => {
    await serveDist(page.context());
    await use(page);
  },
  app: async ({ page, server }, use) => {
    const app = new App(page, server);
    await app.signIn();
    await use(app);
    if (app.errors.length > 0) throw new Error(`the browser complained: ${app.errors.join("\n")}`);
  },
  tab: async ({ context, server }, use) => {
    await use(() => openTab(context, server));
  },
});

async function openTab(context: BrowserContext, server: Server): Promise<App> {
  return new App(await context.newPage(), server);
}
