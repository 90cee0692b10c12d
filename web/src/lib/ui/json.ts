/** A JSON value as the nodes of a tree. */

export interface JsonNode {
  id: string;
  name: string;
  kind: "string" | "number" | "boolean" | "null" | "list";
  shown: string;
  /** All of a text that is shown in part. */
  whole: string | undefined;
  children?: JsonNode[];
}

/** More than this is shown as JSON only: a tree of it helps nobody. */
const MOST = 2_000;
const LONGEST = 300;

export function jsonNodes(value: unknown): JsonNode[] {
  let left = MOST;
  const make = (name: string, inner: unknown, id: string): JsonNode => {
    left -= 1;
    if (inner === null || typeof inner !== "object") return leaf(id, name, inner);
    const entries = Object.entries(inner);
    const isList = Array.isArray(inner);
    const shown = isList ? `[${entries.length}]` : `{${entries.length}}`;
    const kept = entries.slice(0, Math.max(0, left));
    const children = kept.map(([key, child]) => make(key, child, `${id}/${key}`));
    const rest = entries.length - kept.length;
    if (rest > 0)
      children.push({ id: `${id}/…`, name: "", kind: "list", shown: `${rest} more; see JSON`, whole: undefined });
    return { id, name, kind: "list", shown, whole: undefined, children };
  };
  const root = make("", value, "$");
  return root.children && root.children.length > 0 ? root.children : [root];
}

function leaf(id: string, name: string, value: unknown): JsonNode {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  const kind = value === null || value === undefined ? "null" : (typeof value as "string" | "number" | "boolean");
  const long = text.length > LONGEST;
  return {
    id,
    name,
    kind,
    shown: long ? `${text.slice(0, LONGEST)}…` : text,
    whole: long ? text.slice(0, 4_000) : undefined,
  };
}
