/** What is said about a source, and where it leads. */
import { href } from "$lib/app/router.svelte";
import type { Source } from "$lib/rpc/types";
import type { IconName } from "$lib/ui/icons";

export const iconOf: Record<Source["kind"], IconName> = {
  note: "notes",
  code: "code",
  text: "file",
  commit: "fork",
  thread: "threads",
  web: "external",
  context: "history",
};

/** The place, as one would write it: `src/a.rs:4-9`. */
export function placeOf(source: Source): string {
  if (source.kind !== "note" && source.kind !== "code" && source.kind !== "text") return source.path;
  const lines =
    source.line_end > source.line_start ? `${source.line_start}-${source.line_end}` : `${source.line_start}`;
  return `${source.path}:${lines}`;
}

/** The view that shows all of it. */
export function viewOf(source: Source): string | null {
  const line = { line: String(source.line_start) };
  if (source.kind === "note") return href("notes", [source.path], line);
  if (source.kind === "code" || source.kind === "text") return href("code", [source.path], line);
  if (source.kind === "thread") return href("threads", [source.path.replace(/^thread:/, "").split("#")[0] ?? ""]);
  return null;
}
