/** From what was journaled of a query to a tree of spans: who did what, from when to when. */
import { type Item, isData, isDone, isProgress } from "$lib/rpc";
import type { AgentTraceResult, EventTrace, TurnTrace } from "$lib/rpc/types";

export interface Span {
  /** A call's id; a turn's is that of its call, `#` and a number. */
  id: string;
  kind: "query" | "model" | "tool" | "prepare";
  label: string;
  /** The dotted names from the root to here. */
  path: string;
  /** Milliseconds since the query began; `null` where it is not known. */
  start: number | null;
  /** `null` while it runs. */
  end: number | null;
  /** `success`, `error`, `denied`, …; `null` while it runs. */
  ending: string | null;
  arguments: unknown;
  turn: TurnTrace | null;
  /** Whether the call updated the search index first: then that, and not the search, took the time. */
  indexed: boolean;
  children: Span[];
}

interface Payload {
  tool_name?: string;
  method?: string;
  path?: string;
  model?: string;
  arguments?: unknown;
}

/** The method of a plugin that emits data of a type, where only one does. */
export type MethodOf = (plugin: string, contentType: string) => string | undefined;

/** The tree, and how long all of it took. `items` are those of the stream, by call. */
export function spansOf(
  trace: AgentTraceResult,
  items: Map<string, Item[]>,
  now: number,
  methodOf: MethodOf,
): { root: Span; total: number } {
  const began = Date.parse(trace.query.started_at);
  const since = (at: string) => Date.parse(at) - began;
  const ended = trace.query.ended_at ? since(trace.query.ended_at) : null;
  const rootId = trace.query.call_id ?? trace.query.id;
  const state =
    trace.query.state === "running" ? null : trace.query.state === "complete" ? "success" : trace.query.state;
  const root = span(rootId, "query", "agent.chat", "agent", 0, ended, state);
  const byCall = new Map([[rootId, root]]);
  for (const found of tools(trace.events, rootId, since)) byCall.set(found.id, found);
  addUntold(byCall, items, rootId, methodOf);
  for (const one of byCall.values()) if (one !== root) parentOf(one.id, byCall, root).children.push(one);
  const requests = turns(trace, rootId, since);
  for (const turn of requests) (byCall.get(turn.id.split("#")[0] ?? "") ?? root).children.push(turn);
  addPreparation(root, requests);
  for (const [id, list] of items) {
    const known = byCall.get(id);
    if (known && list.some((item) => isProgress(item) && INDEXING.test(item.message))) known.indexed = true;
  }
  settle(root, ended);
  return { root, total: Math.max(1, ended ?? now - began, last(root)) };
}

/** Progress messages of an update of the index. */
const INDEXING = /^(looking at the files|(read|index|embed)\w* \d+ of \d+)/i;

/** Milliseconds before the first turn that are worth a span. */
const NOTABLE = 1;

/** The time before the first request: the queue, the search for passages and the prompt. */
function addPreparation(root: Span, requests: Span[]): void {
  const first = Math.min(...requests.map((turn) => turn.start ?? Infinity));
  if (!Number.isFinite(first) || first < NOTABLE) return;
  root.children.push(span(`${root.id}#0`, "prepare", "prepare the first request", "", 0, first, "success"));
}

function span(
  id: string,
  kind: Span["kind"],
  label: string,
  path: string,
  start: number | null,
  end: number | null,
  ending: string | null,
): Span {
  return { id, kind, label, path, start, end, ending, arguments: undefined, turn: null, indexed: false, children: [] };
}

/** A tool's call begins with `tool.call.pending`; any other `tool.call.…` of the same call ends it. */
function tools(events: EventTrace[], root: string, since: (at: string) => number): Span[] {
  const found = new Map<string, Span>();
  for (const event of events.filter((one) => one.kind.startsWith("tool.call.") && one.call && one.call !== root)) {
    const id = event.call ?? "";
    const payload = event.payload as Payload;
    let known = found.get(id);
    if (!known) {
      known = span(
        id,
        "tool",
        payload.method ?? payload.tool_name ?? "call",
        payload.path ?? "",
        since(event.at),
        null,
        null,
      );
      known.arguments = payload.arguments;
      found.set(id, known);
    }
    if (event.kind !== "tool.call.pending")
      [known.end, known.ending] = [since(event.at), event.kind.replace("tool.call.", "")];
  }
  return [...found.values()];
}

/** The plugin that a call was made to, by its path. */
const pluginOf = (list: Item[]): string => list[0]?.plugin_path.split(".").at(-1) ?? "";

/** The plugins of calls that only the stream knows of: their methods are known by what they emitted. */
export function untoldPlugins(trace: AgentTraceResult, items: Map<string, Item[]>): string[] {
  const told = new Set(trace.events.map((event) => event.call));
  const untold = [...items].filter(([id]) => id !== trace.query.call_id && !told.has(id));
  return [...new Set(untold.map(([, list]) => pluginOf(list)))].sort();
}

/**
 * Calls that are no tools are known from the stream alone: by what they emitted, and without times. How a call
 * ended, the stream says best.
 */
function addUntold(byCall: Map<string, Span>, items: Map<string, Item[]>, root: string, methodOf: MethodOf): void {
  for (const [id, list] of items) {
    const done = list.find(isDone);
    const status = done ? (done.status === "complete" ? "success" : done.status) : null;
    const known = byCall.get(id);
    if (known && known.id !== root && status !== null && status !== "success") known.ending = status;
    if (known || !id.startsWith(root)) continue;
    const plugin = pluginOf(list);
    const type = list.find(isData)?.content_type;
    const label = (type ? methodOf(plugin, type) : undefined) ?? plugin;
    byCall.set(id, span(id, "tool", label, list[0]?.plugin_path ?? "", null, null, status));
  }
}

function parentOf(id: string, byCall: Map<string, Span>, root: Span): Span {
  let parent = id;
  while (parent.includes(".")) {
    parent = parent.slice(0, parent.lastIndexOf("."));
    const found = byCall.get(parent);
    if (found) return found;
  }
  return root;
}

/** Requests to models: from `agent.turn.start` to the answer, or to the end of the turn. */
function turns(trace: AgentTraceResult, root: string, since: (at: string) => number): Span[] {
  const counts = new Map<string, number>();
  return trace.events
    .filter((event) => event.kind === "agent.turn.start")
    .map((event) => {
      const call = event.call ?? root;
      const number = (counts.get(call) ?? 0) + 1;
      counts.set(call, number);
      const start = since(event.at);
      const turn = call === root ? (trace.turns[number - 1] ?? null) : null;
      const over = trace.events.find(
        (other) => other.kind === "agent.turn.end" && other.call === event.call && since(other.at) >= start,
      );
      const end = turn ? since(turn.at) : over ? since(over.at) : null;
      const model = (event.payload as Payload).model ?? "model";
      const made = span(
        `${call}#${number}`,
        "model",
        `turn ${number} · ${model}`,
        "",
        start,
        end === null ? null : Math.max(start, end),
        end === null ? null : "success",
      );
      made.turn = turn;
      return made;
    });
}

/** In the order they began. What is open in a query that has ended was cut with it. */
function settle(one: Span, ended: number | null): void {
  one.children.sort((a, b) => (a.start ?? Infinity) - (b.start ?? Infinity));
  for (const child of one.children) {
    if (ended !== null && child.start !== null && child.end === null)
      [child.end, child.ending] = [Math.max(child.start, ended), child.ending ?? "interrupted"];
    settle(child, ended);
  }
}

function last(one: Span): number {
  return Math.max(one.end ?? 0, ...one.children.map(last));
}

export interface Bar {
  span: Span;
  row: number;
  left: number;
  width: number;
}

/** The flame chart: children below their parents, those that overlap below each other. */
export function bars(root: Span, total: number): Bar[] {
  const found: Bar[] = [];
  const rows: number[] = [];
  const place = (one: Span, from: number) => {
    if (one.start === null) return;
    const end = one.end ?? total;
    let row = from;
    while ((rows[row] ?? -1) > one.start) row += 1;
    rows[row] = Math.max(end, one.start + total / 500);
    found.push({ span: one, row, left: one.start / total, width: Math.max(end - one.start, total / 500) / total });
    for (const child of one.children) place(child, row + 1);
  };
  place(root, 0);
  return found;
}

export function find(one: Span, id: string): Span | null {
  if (one.id === id) return one;
  for (const child of one.children) {
    const found = find(child, id);
    if (found) return found;
  }
  return null;
}
