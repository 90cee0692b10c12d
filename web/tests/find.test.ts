import { type App, expect, test } from "./support/test.ts";

const field = (app: App) => app.page.getByRole("combobox", { name: "Go to or run" });
const results = (app: App) => app.page.getByRole("listbox", { name: "Results" }).getByRole("option");
const question = (app: App) => app.page.getByRole("textbox", { name: "Question" });

async function ask(app: App, text: string): Promise<void> {
  await app.open("#/ask");
  await question(app).fill(text);
  await app.page.keyboard.press("Enter");
  await expect(app.page.getByRole("article").last()).toHaveAttribute("aria-busy", "false");
}

async function find(app: App, words: string): Promise<void> {
  await app.page.keyboard.press("ControlOrMeta+k");
  await field(app).fill(words);
}

test("Ctrl-K finds notes, symbols, files, conversations, rules and commands", async ({ app, model }) => {
  const { page } = app;
  const name = `zebra ${Date.now()}`;
  model.says([{ text: "Striped." }]);
  await ask(app, `What about the ${name}?`);
  const cases: [string, RegExp, string, RegExp][] = [
    ["authent", /Authentication/, "Note", /#\/notes\/notes%2Fdecisions%2Fauth\.md/],
    ["verify", /verify/, "Code", /#\/code\/src%2Fauth%2Fjwt\.rs\?line=\d+/],
    ["cart", /cart\.py/, "File", /#\/code\/src%2Fcart\.py/],
    [name, /zebra/, "Conversation", /#\/ask\/.+/],
    ["token budget warn", /Token budget warning/i, "Rule", /#\/rules\/rules%2Ftoken-budget-warning/],
    ["go to trace", /Go to Trace/, "Go to", /#\/trace/],
  ];
  for (const [words, title, group, address] of cases) {
    await app.open("#/notes");
    await find(app, words);
    const entry = results(app).filter({ hasText: title }).filter({ hasText: group }).first();
    await expect(entry, words).toBeVisible();
    await entry.click();
    await expect(page, words).toHaveURL(address);
  }
  await find(app, "nothing has this name at all");
  await expect(page.getByText("No match")).toBeVisible();
  expect(await app.findings()).toEqual([]);
  await page.keyboard.press("Escape");
});

test("conversations are searched, renamed and closed", async ({ app, model }) => {
  const { page } = app;
  const mark = `m${Date.now()}`;
  for (const animal of ["ant", "bee", "cat", "dog", "eel", "fox"]) {
    model.says([{ text: "Yes." }]);
    await ask(app, `Is the ${animal} ${mark}?`);
  }
  const list = page.getByRole("complementary", { name: "Conversations" });
  await expect(list.getByRole("heading", { name: "Today" })).toBeVisible();
  await list.getByRole("searchbox", { name: "Search conversations" }).fill(`dog ${mark}`);
  await expect(list.getByRole("link")).toHaveCount(1);
  await list.getByRole("link").hover();
  await list.getByRole("button", { name: /^Rename/ }).click();
  const dialog = page.getByRole("dialog", { name: "Rename conversation" });
  await dialog.getByLabel("Name").fill(`Renamed ${mark}`);
  await dialog.getByRole("button", { name: "Rename" }).click();
  await expect(list.getByRole("link", { name: `Renamed ${mark}` })).toBeVisible();
  await page.reload();
  await expect(list.getByRole("link", { name: `Renamed ${mark}` })).toBeVisible();
  await list.getByRole("link", { name: `Renamed ${mark}` }).hover();
  await list.getByRole("button", { name: `Close Renamed ${mark}` }).click();
  await expect(list.getByRole("link", { name: `Renamed ${mark}` })).toHaveCount(0);
});

test("a question is edited and asked again in its place", async ({ app, model }) => {
  const { page } = app;
  model.says([{ text: "First answer." }], [{ text: "Second answer." }], [{ text: "Better answer." }]);
  await ask(app, "How do I spel this?");
  await question(app).fill("And then?");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Second answer.")).toBeVisible();
  await expect(page.getByRole("article").last()).toHaveAttribute("aria-busy", "false");
  const first = page.getByRole("article").first();
  await first.hover();
  await first.getByRole("button", { name: "Edit the question" }).click();
  await expect(question(app)).toHaveValue("How do I spel this?");
  await question(app).fill("How do I spell this?");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Better answer.")).toBeVisible();
  await expect(page.getByRole("article")).toHaveCount(1);
  // The model does not see what was replaced.
  expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain("First answer.");
  await page.reload();
  await expect(page.getByText("Better answer.")).toBeVisible();
  await expect(page.getByRole("article")).toHaveCount(1);
});

test("text files are attached to a question", async ({ app, model }) => {
  const { page } = app;
  await app.open("#/ask");
  await page.getByLabel("Files to attach").setInputFiles([
    { name: "error.log", mimeType: "text/plain", buffer: Buffer.from("panic at line 7\n```\nnot the end\n") },
    { name: "picture.png", mimeType: "image/png", buffer: Buffer.from([0x89, 0x50, 0, 1]) },
  ]);
  await expect(question(app)).toHaveValue(/error\.log:\n````\npanic at line 7/);
  await expect(page.getByText("is not a text file")).toBeVisible();
  model.says([{ text: "Line 7." }]);
  await page.keyboard.press("Enter");
  await expect(page.getByText("Line 7.", { exact: true })).toBeVisible();
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("panic at line 7");
});

test("j and k walk through lists", async ({ app }) => {
  const { page } = app;
  for (const [address, table] of [
    ["#/rules", "Rules"],
    ["#/plugins", "Plugins"],
  ] as const) {
    await app.open(address);
    const rows = page.getByRole("table", { name: table }).locator("tbody tr");
    await expect(rows.first()).toBeVisible();
    await page.getByRole("main").focus();
    await page.keyboard.press("j");
    await expect(rows.nth(0)).toBeFocused();
    await page.keyboard.press("j");
    await expect(rows.nth(1)).toBeFocused();
    await page.keyboard.press("k");
    await expect(rows.nth(0)).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(new RegExp(`${address}/.+`));
  }
});

test("plugins say what they do", async ({ app }) => {
  await app.open("#/plugins");
  const rows = app.page.getByRole("table", { name: "Plugins" }).locator("tbody tr");
  await expect(rows.filter({ hasText: "events" }).first()).toContainText("Lists recent events and streams new ones.");
  for (const row of await rows.all()) await expect(row.locator(".about"), await row.innerText()).not.toBeEmpty();
});

test("the note tree starts folded where there are many notes, and joins single folders", async ({ app, server }) => {
  const { page } = app;
  for (let i = 0; i < 50; i += 1) server.write(`deep/one/two/n${i}.md`, `# Deep ${i}\n\nText.\n`);
  server.run("index");
  await app.open("#/trace");
  await app.open("#/notes");
  const tree = page.getByRole("tree", { name: "Notes by folder" });
  const folder = tree.getByRole("treeitem").filter({ hasText: "deep/one/two" });
  await expect(folder).toHaveAttribute("aria-expanded", "false");
  await expect(tree.getByText("Deep 0", { exact: true })).toHaveCount(0);
  await folder.click();
  await expect(tree.getByText("Deep 0", { exact: true })).toBeVisible();
  // A hit shows the title of its note, and the line that has the words.
  server.write("notes/decisions/mail.md", "# Mail\n\n## Decision\n\nQuite long.\n\nMail goes out once.\n");
  server.run("index");
  await page.getByRole("searchbox", { name: "Search notes" }).fill("goes out once");
  const hit = page.getByRole("list", { name: "Passages" }).getByRole("link").first();
  await expect(hit).toContainText("Mail");
  await expect(hit).toContainText("notes/decisions/mail.md:7");
});
