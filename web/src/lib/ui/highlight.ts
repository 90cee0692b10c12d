/** Colours for code: text in, pieces with classes out. Never markup, so nothing in the text can become one. */
import type { Root, RootContent } from "hast";

export interface Piece {
  text: string;
  /** `keyword`, `string`, …; see the end of CodeView.svelte. */
  kind: string;
}

/** More than this is shown without colours. */
const LONGEST = 200_000;

const ENDINGS: Record<string, string> = {
  rs: "rust", py: "python", ts: "typescript", tsx: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript",
  go: "go", java: "java", c: "c", h: "c", cpp: "cpp", hpp: "cpp", cc: "cpp", md: "markdown", toml: "ini", ini: "ini",
  json: "json", yaml: "yaml", yml: "yaml", sh: "bash", bash: "bash", sql: "sql", html: "xml", xml: "xml", svelte: "xml",
  css: "css", lua: "lua", luau: "lua", diff: "diff", rust: "rust", python: "python", typescript: "typescript",
  javascript: "javascript", console: "bash", shell: "bash", markdown: "markdown",
}; // biome-ignore format: a table

/** The language of a file, by its name or by what a fence in Markdown says. */
export function languageOf(name: string): string | null {
  const ending = name.toLowerCase().split(/[./]/).at(-1) ?? "";
  return ENDINGS[ending] ?? null;
}

type Highlighter = (language: string, text: string) => Root;
let loading: Promise<Highlighter> | null = null;

/** The lines of a text, each in pieces. The highlighter is loaded when it is first needed. */
export async function highlighted(text: string, language: string | null): Promise<Piece[][]> {
  if (!language || text.length > LONGEST) return plain(text);
  loading ??= import("./languages").then((module) => module.highlight);
  const highlight = await loading;
  const pieces: Piece[] = [];
  collect(highlight(language, text).children, "", pieces);
  return lines(pieces);
}

/** The same without colours, at once. */
export function plain(text: string): Piece[][] {
  return text.split("\n").map((line) => [{ text: line, kind: "" }]);
}

function collect(nodes: RootContent[], kind: string, pieces: Piece[]): void {
  for (const node of nodes) {
    if (node.type === "text") pieces.push({ text: node.value, kind });
    else if (node.type === "element") {
      const names = node.properties.className;
      const first = Array.isArray(names) ? String(names[0]).replace("hljs-", "") : "";
      collect(node.children as RootContent[], first || kind, pieces);
    }
  }
}

function lines(pieces: Piece[]): Piece[][] {
  const result: Piece[][] = [[]];
  for (const piece of pieces) {
    const [first = "", ...rest] = piece.text.split("\n");
    result.at(-1)?.push({ text: first, kind: piece.kind });
    for (const line of rest) result.push([{ text: line, kind: piece.kind }]);
  }
  return result;
}
