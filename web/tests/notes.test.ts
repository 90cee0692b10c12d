import { expect, loaded, test } from "./support/test.ts";

const address = (path: string, query = "") => `#/notes/${encodeURIComponent(path)}${query}`;

test("a note is read, with its frontmatter, tags and backlinks, and its links lead on", async ({ app, server }) => {
  const { page } = app;
  server.write("notes/status.md", "---\nstatus: accepted\ntags: [plan]\n---\n# Status\n");
  await app.open("#/notes");
  await page.getByRole("treeitem", { name: "Authentication" }).click();
  const note = page.getByRole("article", { name: "auth" });
  await expect(note.getByRole("heading", { name: "Authentication" })).toBeVisible();
  await expect(note.getByRole("link", { name: "#decision" })).toBeVisible();
  const backlinks = page.getByRole("complementary", { name: "Linked from" });
  await expect(backlinks.getByRole("link", { name: "index" })).toBeVisible();
  await note.getByRole("button", { name: "sessions" }).click();
  await expect(page.getByRole("heading", { name: "Sessions" })).toBeVisible();
  await expect(page).toHaveURL(/sessions\.md/);
  await note.page().goBack();
  await expect(page.getByRole("heading", { name: "Authentication" })).toBeVisible();
  await app.open(address("notes/status.md"));
  await expect(page.getByLabel("Frontmatter").getByText("accepted")).toBeVisible();
  await expect(page.getByRole("list", { name: "Tags" }).getByRole("link", { name: "#plan" })).toBeVisible();
});

test("lines that a link names are marked", async ({ app }) => {
  await app.open(address("notes/decisions/auth.md", "?line=10&to=11"));
  const marked = app.page.locator(".marked");
  await expect(marked).toHaveCount(1);
  await expect(marked).toContainText("The refresh flow was dropped");
});

test("a link that leads nowhere offers to write the note", async ({ app, server }) => {
  server.write("notes/plan.md", "# Plan\n\nWe need [[pricing]].\n");
  const { page } = app;
  await app.open(address("notes/plan.md"));
  await page.getByRole("button", { name: "pricing" }).click();
  const dialog = page.getByRole("dialog", { name: "New note" });
  await expect(dialog.getByLabel("Where")).toHaveValue("notes/pricing");
  await dialog.getByRole("button", { name: "Write it" }).click();
  await expect(page.getByLabel("Text of notes/pricing.md")).toHaveValue(/^# pricing\n/);
});

test("notes are found as one types, and the keyboard leads to them", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes");
  await page.getByRole("tree", { name: "Notes by folder" }).waitFor();
  await page.getByRole("main").focus();
  await page.keyboard.press("/");
  await page.keyboard.type("refresh flow");
  const passages = page.getByRole("list", { name: "Passages" });
  await expect(passages.getByRole("link").first()).toContainText("refresh");
  await expect(passages.locator("mark").first()).toBeVisible();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.locator(".marked").first()).toBeVisible();
});

test("the list of notes is walked with the keyboard", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes");
  const tree = page.getByRole("tree", { name: "Notes by folder" });
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowLeft");
  await expect(tree.getByRole("treeitem").first()).toHaveAttribute("aria-expanded", "false");
  await page.keyboard.press("ArrowRight");
  await expect(tree.getByRole("treeitem", { name: "Sessions" })).toBeVisible();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article")).toBeVisible();
});

test("a note is written, previewed as one types, moved with its links, deleted and brought back", async ({
  app,
  server,
}) => {
  const { page } = app;
  server.write("notes/hub.md", "# Hub\n\nSee [[life]].\n");
  await app.open("#/notes");
  await page.getByRole("button", { name: "New note" }).click();
  const dialog = page.getByRole("dialog", { name: "New note" });
  await dialog.getByLabel("Where").fill("notes/life");
  await dialog.getByLabel("Title").fill("A life");
  await page.keyboard.press("Enter");

  await page.getByLabel("Text of notes/life.md").fill("# A life\n\nWritten **here**.\n");
  await expect(page.getByRole("region", { name: "Preview" }).locator("strong")).toHaveText("here");
  await expect(page.getByText("not saved")).toBeVisible();
  await page.keyboard.press("ControlOrMeta+s");
  await expect(page.getByRole("article").locator("strong")).toHaveText("here");

  await page.getByRole("button", { name: "Move or rename" }).click();
  await page.getByRole("dialog", { name: "Move or rename" }).getByLabel("New place").fill("notes/archive/life.md");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/archive%2Flife\.md/);
  const hub = await server.call<{ text: string }>("vault.read", { path: "notes/hub.md" });
  expect(hub.text).toContain("life");
  const { backlinks } = await server.call<{ backlinks: { path: string }[] }>("vault.backlinks", {
    path: "notes/archive/life.md",
  });
  expect(backlinks.map((link) => link.path)).toEqual(["notes/hub.md"]);

  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete this note?" }).getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("is in the trash")).toBeVisible();
  await page.getByRole("button", { name: "Trash" }).click();
  await page.getByRole("button", { name: "Bring back notes/archive/life.md" }).click();
  await expect(page.getByRole("heading", { name: "A life" })).toBeVisible();
});

test("a change that somebody made meanwhile is never written over unseen", async ({ app, server }) => {
  const { page } = app;
  server.write("notes/shared.md", "# Shared\n\nfirst\n");
  await app.open(address("notes/shared.md", "?tab=edit"));
  await page.getByLabel("Text of notes/shared.md").fill("# Shared\n\nmine\n");
  await server.call("vault.write", { path: "notes/shared.md", body: "# Shared\n\ntheirs\n" });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "The note was changed meanwhile" });
  await expect(dialog.getByRole("region", { name: "What was changed meanwhile" })).toContainText("theirs");
  const before = await server.call<{ text: string }>("vault.read", { path: "notes/shared.md" });
  expect(before.text).toContain("theirs");

  await dialog.getByRole("button", { name: "Go on editing" }).click();
  await expect(page.getByLabel("Text of notes/shared.md")).toHaveValue("# Shared\n\nmine\n");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByRole("button", { name: "Save mine over theirs" }).click();
  await expect(page.getByRole("article").getByText("mine")).toBeVisible();
});

test("what is not saved survives a reload", async ({ app, server }) => {
  const { page } = app;
  server.write("notes/draft.md", "# Draft\n");
  await app.open(address("notes/draft.md", "?tab=edit"));
  const area = page.getByLabel("Text of notes/draft.md");
  await area.fill("# Draft\n\nnot yet\n");
  await expect(page.getByText("not saved")).toBeVisible();
  page.on("dialog", (dialog) => void dialog.accept());
  await page.reload();
  await expect(area).toHaveValue("# Draft\n\nnot yet\n");
});

test("history tells what changed, and takes it back", async ({ app, server }) => {
  const { page } = app;
  const path = "notes/past.md";
  await server.call("vault.write", { path, body: "# Past\n\none\n" });
  await server.call("vault.write", { path, body: "# Past\n\ntwo\n" });
  await app.open(address(path, "?tab=history"));
  const diff = page.getByRole("region", { name: "What changed" });
  await expect(diff.locator(".removed")).toContainText("one");
  await expect(diff.locator(".added")).toContainText("two");
  await page.getByRole("button", { name: "Take this change back" }).click();
  await expect(page.getByText("The change is taken back")).toBeVisible();
  const note = await server.call<{ text: string }>("vault.read", { path });
  expect(note.text).toContain("one");
  await expect(page.getByRole("list", { name: "Changes, newest first" }).getByRole("button").first()).toContainText(
    "taken back",
  );
});

test("tags lead to the notes that have them", async ({ app }) => {
  const { page } = app;
  await app.open("#/notes?show=tags");
  await page.getByRole("link", { name: /^#decision/ }).click();
  const tree = page.getByRole("tree", { name: "Notes by folder" });
  await expect(tree.getByRole("treeitem", { name: "Authentication" })).toBeVisible();
  await expect(tree.getByRole("treeitem", { name: "Sessions" })).toHaveCount(0);
});

test("what a note says stays text, whatever it says", async ({ app, server }) => {
  const { page } = app;
  const hostile = [
    '# <img src=x onerror="window.hacked=1">',
    "<script>window.hacked = 1</script>",
    '<svg onload="window.hacked=1"><a xlink:href="javascript:window.hacked=1">x</a></svg>',
    "[script](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>) [odd](JaVaScRiPt:window.hacked=1)",
    '![image](x" onerror="window.hacked=1) [[<img src=x onerror=window.hacked=1>]] <javascript:window.hacked=1>',
    '`<b onclick=window.hacked=1>` <iframe srcdoc="<script>parent.hacked=1</script>"></iframe>',
    "| <img src=x onerror=window.hacked=1> |\n|---|\n| <svg/onload=window.hacked=1> |",
  ].join("\n\n");
  const path = "notes/hostile.md";
  server.write(
    path,
    `---\ntitle: <img src=x onerror=window.hacked=1>\ntags: ["<script>window.hacked=1</script>"]\n---\n${hostile}\n`,
  );
  const isHarmless = async () => {
    const found = await page.evaluate(() => ({
      hacked: (window as { hacked?: number }).hacked,
      made: document.querySelectorAll(
        "main iframe, main script, main img, main [onerror], main [onload], main [onclick]",
      ).length,
      links: [...document.querySelectorAll("main a")]
        .map((a) => a.getAttribute("href") ?? "")
        .filter((to) => /^\s*(javascript|data|vbscript):/i.test(to)),
    }));
    expect(found).toEqual({ hacked: undefined, made: 0, links: [] });
  };
  await app.open(address(path));
  await expect(page.getByText("<script>window.hacked = 1</script>")).toBeVisible();
  await page.locator("[data-line]").filter({ hasText: "odd" }).first().click();
  await isHarmless();
  await app.open(address(path, "?tab=edit"));
  await expect(
    page.getByRole("region", { name: "Preview" }).getByText("<script>window.hacked = 1</script>"),
  ).toBeVisible();
  await isHarmless();
  await app.open("#/notes?show=graph");
  await expect(page.locator("[data-layout=done]")).toBeVisible();
  await page.getByRole("button", { name: "Show as a table" }).click();
  await expect(page.getByRole("table", { name: "Notes and their links" })).toBeVisible();
  await isHarmless();
});

test("notes have no serious finding of axe-core, light or dark, and fit a phone", async ({ app }) => {
  const { page } = app;
  const places = [
    address("notes/decisions/auth.md"),
    address("notes/sessions.md", "?tab=edit"),
    address("notes/sessions.md", "?tab=history"),
    "#/notes?show=graph",
    "#/notes?show=tags",
  ];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const place of places) {
      await app.open(place);
      await loaded(page);
      expect(await app.findings(), `${place} ${colorScheme}`).toEqual([]);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const place of places) {
    await app.open(place);
    await loaded(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), place).toBeLessThanOrEqual(390);
  }
});
