/** Markdown, read. Drawing it is in Markdown.svelte. */
import { Lexer, type Token } from "marked";

export interface Citing {
  /** How many sources `[1]`, `[2]`, … may refer to; without it such a text is only text. */
  cites?: number;
  oncite?: (number: number) => void;
  /** Takes a link that leads into the project (`notes/a.md`, `[[a]]`); without it, it is text. */
  onlink?: (target: string) => void;
}

export function tokens(text: string): Token[] {
  return new Lexer({ gfm: true }).lex(text).filter((token) => token.type !== "space" && token.type !== "def");
}

/** Where a link leads: outside, into the project, or nowhere because it is none that we follow. */
export function target(href: string): { kind: "outside" | "inside" | "none"; href: string } {
  const trimmed = href.trim();
  if (/^https?:\/\//i.test(trimmed) || /^mailto:/i.test(trimmed)) return { kind: "outside", href: trimmed };
  if (/^[a-z][a-z0-9+.-]*:/i.test(trimmed) || trimmed.startsWith("//")) return { kind: "none", href: trimmed };
  return { kind: "inside", href: trimmed };
}

export interface Part {
  kind: "text" | "cite" | "wiki";
  text: string;
  number: number;
}

/** A text in parts: words, `[3]` where there is a third source, `[[note]]`. */
export function parts(text: string, cites: number, wiki: boolean): Part[] {
  const found: Part[] = [];
  let at = 0;
  for (const match of text.matchAll(/\[\[([^[\]]+)\]\]|\[(\d{1,3})\]/g)) {
    const number = Number(match[2] ?? 0);
    const isCite = number >= 1 && number <= cites;
    if (!isCite && !(wiki && match[1])) continue;
    if (match.index > at) found.push({ kind: "text", text: text.slice(at, match.index), number: 0 });
    found.push(isCite ? { kind: "cite", text: match[0], number } : { kind: "wiki", text: match[1] ?? "", number: 0 });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ kind: "text", text: text.slice(at), number: 0 });
  return found;
}

/** What an entity like `&amp;` stands for: the reader leaves some in. */
export function unescaped(text: string): string {
  const names: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => names[name] ?? whole);
}
