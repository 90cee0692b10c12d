/**
 * `PAGE_DIST=dist` tests what `npx vite build` has just written instead of what is in the program, which
 * saves a `cargo build` while one works on the page. Headers are the program's.
 */
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { BrowserContext } from "@playwright/test";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

export async function serveDist(context: BrowserContext): Promise<void> {
  const folder = process.env.PAGE_DIST;
  if (!folder) return;
  await context.route(/^http:\/\/127\.0\.0\.1:\d+\//, async (route) => {
    const { pathname, origin } = new URL(route.request().url());
    const file = join(folder, pathname === "/" ? "index.html" : pathname);
    if (route.request().method() !== "GET" || !existsSync(file)) return route.fallback();
    const policy = (await fetch(origin).catch(() => null))?.headers.get("content-security-policy") ?? "";
    const headers = { "content-type": TYPES[extname(file)] ?? "", "content-security-policy": policy };
    await route.fulfill({ body: readFileSync(file), headers });
  });
}
