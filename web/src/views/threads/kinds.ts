/** What an entry can be. */
import type { EntryType } from "$lib/rpc/types";

export const kinds: { id: EntryType; title: string; badge: "plain" | "good" | "info" | "accent"; about: string }[] = [
  { id: "thought", title: "Thought", badge: "plain", about: "What comes to mind" },
  { id: "decision", title: "Decision", badge: "accent", about: "What was decided, and why" },
  { id: "research", title: "Research", badge: "info", about: "What was found out" },
  { id: "insight", title: "Insight", badge: "good", about: "What follows from it" },
];

/** One line of an entry, without the signs of Markdown: for a list, where nothing is drawn. */
export const withoutMarks = (text: string): string =>
  text
    .replace(/^\s{0,3}(#{1,6}|[-*+>]|\d+\.)\s+/gm, "")
    .replace(/\*\*|__|~~|`/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\s+/g, " ");

export const kindOf = (id: EntryType) => kinds.find((kind) => kind.id === id) ?? kinds[0];
