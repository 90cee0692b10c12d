/** A note's text, taken apart: its frontmatter, and blocks that know their lines. */
import { Lexer, type Token } from "marked";

export interface Split {
  /** The lines between the fences; nothing where there is none. */
  frontmatter: string | null;
  body: string;
  /** The number of the body's first line. */
  first: number;
}

export function split(text: string): Split {
  const found = /^---[ \t]*\r?\n([\s\S]*?)(?:^|\r?\n)---[ \t]*(?:\r?\n|$)/m.exec(text.startsWith("---") ? text : "");
  if (found?.index !== 0) return { frontmatter: null, body: text, first: 1 };
  const body = text.slice(found[0].length);
  return { frontmatter: found[1] ?? "", body, first: found[0].split("\n").length };
}

export interface Field {
  name: string;
  value: string;
}

/** The fields of frontmatter as they are written; what belongs to one stays with it. */
export function fields(frontmatter: string): Field[] {
  const found: Field[] = [];
  for (const line of frontmatter.split(/\r?\n/)) {
    const field = /^([\w.-]+):\s*(.*)$/.exec(line);
    const last = found.at(-1);
    if (field) found.push({ name: field[1] ?? "", value: field[2] ?? "" });
    else if (last && line.trim()) last.value = `${last.value}\n${line}`.trim();
  }
  return found;
}

export interface Block {
  token: Token;
  from: number;
  to: number;
}

/** The blocks of Markdown, each with its first and last line. */
export function blocks(body: string, first: number): Block[] {
  const found: Block[] = [];
  let line = first;
  for (const token of new Lexer({ gfm: true }).lex(body)) {
    const breaks = token.raw.split("\n").length - 1;
    const lines = token.raw.replace(/\n+$/, "").split("\n").length;
    if (token.type !== "space" && token.type !== "def") found.push({ token, from: line, to: line + lines - 1 });
    line += breaks;
  }
  return found;
}

/** A heading as links name it. */
export function isHeading(token: Token, name: string): boolean {
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
  return token.type === "heading" && plain((token as { text: string }).text) === plain(name);
}

/** Where a link of a note leads: a note and a heading in it, as they are written. */
export function written(link: string): { target: string; heading: string | undefined } {
  const wiki = /^\[\[([\s\S]*)\]\]$/.exec(link);
  const inner = wiki ? (wiki[1]?.split("|")[0] ?? "") : decoded(link);
  const at = inner.indexOf("#");
  return at < 0
    ? { target: inner.trim(), heading: undefined }
    : { target: inner.slice(0, at).trim(), heading: inner.slice(at + 1) };
}

function decoded(link: string): string {
  try {
    return decodeURIComponent(link);
  } catch {
    return link;
  }
}

export const nameOf = (path: string): string => (path.split("/").at(-1) ?? path).replace(/\.(md|markdown)$/i, "");
export const folderOf = (path: string): string => path.split("/").slice(0, -1).join("/");
