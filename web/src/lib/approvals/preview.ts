/** What a call would change, for the person who has to approve it. */
import { call, RpcError } from "$lib/rpc";
import { compared, type DiffLine } from "$lib/ui/diff";

export interface Preview {
  /** Changes to a note, if the call makes any. */
  diff: { path: string; what: "create" | "change" | "delete"; lines: DiffLine[] } | null;
  /** The parameters that the diff does not show. */
  params: [name: string, value: string][];
}

type Params = Record<string, unknown>;

/** Larger notes are not compared: the diff would be longer than anybody reads. */
const MAX_LENGTH = 200_000;

/** The parameters alone, while the current text is loaded. */
export function plain(params: unknown): Preview {
  return { diff: null, params: shown(params, []) };
}

export async function previewOf(method: string, params: unknown, project: string | null): Promise<Preview> {
  const given = (params ?? {}) as Params;
  const { path, body } = given;
  if (typeof path !== "string") return plain(params);
  if (method === "vault.write" && typeof body === "string") {
    const before = await current(path, project);
    const after = before === null ? body : keepFrontmatter(before, body);
    if ((before?.length ?? 0) + after.length > MAX_LENGTH) return plain(params);
    const what = before === null ? "create" : "change";
    return { diff: { path, what, lines: lines(before ?? "", after) }, params: shown(given, ["path", "body"]) };
  }
  if (method === "vault.delete") {
    const before = await current(path, project);
    if (before === null || before.length > MAX_LENGTH) return plain(params);
    return { diff: { path, what: "delete", lines: lines(before, "") }, params: shown(given, ["path"]) };
  }
  return plain(params);
}

/** A new text is all added, a deleted one all removed; without the empty line after the last line break. */
function lines(before: string, after: string): DiffLine[] {
  if (before !== "" && after !== "") return compared(before, after);
  const kind = before === "" ? "added" : "removed";
  const text = (before || after).replace(/\n$/, "").split("\n");
  return text.map((line, i) => ({
    kind,
    text: line,
    old: kind === "removed" ? i + 1 : null,
    now: kind === "added" ? i + 1 : null,
  }));
}

/** The text of a note; `null` where there is none. */
async function current(path: string, project: string | null): Promise<string | null> {
  try {
    return (await call("vault.read", { path }, { project })).text;
  } catch (thrown) {
    if (RpcError.of(thrown).code.endsWith("not_found")) return null;
    throw thrown;
  }
}

/** As `vault.write` does: a text without frontmatter keeps that of the note. */
function keepFrontmatter(before: string, after: string): string {
  const kept = /^---\n[\s\S]*?\n---\n/.exec(before);
  return kept && !after.startsWith("---\n") ? kept[0] + after : after;
}

function shown(params: unknown, without: string[]): [string, string][] {
  if (params === null || typeof params !== "object")
    return params === undefined || params === null ? [] : [["value", text(params)]];
  return Object.entries(params)
    .filter(([name, value]) => !without.includes(name) && value !== null)
    .map(([name, value]) => [name, text(value)]);
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
