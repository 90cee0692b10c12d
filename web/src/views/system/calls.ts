/** Running calls as a tree: a call's id begins with its parent's. */
import type { CallSummary } from "$lib/rpc/types";

export interface CallNode {
  id: string;
  call: CallSummary;
  children: CallNode[];
}

export function tree(calls: CallSummary[]): CallNode[] {
  const nodes = new Map(calls.map((call) => [call.call_id, { id: call.call_id, call, children: [] as CallNode[] }]));
  const roots: CallNode[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.id.split(".").slice(0, -1).join("."));
    (parent?.children ?? roots).push(node);
  }
  return roots;
}
