/** What a rule decided, in words. */
import type { Kind } from "./words";

export interface Told {
  kind: Kind;
  type: string;
  text: string;
}

const KINDS: Record<string, Kind> = {
  deny: "bad",
  require_approval: "warn",
  notify_self: "info",
  log: "plain",
  set_state: "accent",
  emit_event: "accent",
};

/** Decisions come from the journal, where another version may have written them: nothing is taken for granted. */
export function told(decisions: unknown): Told[] {
  if (!Array.isArray(decisions)) return [];
  return decisions.filter((one): one is Record<string, unknown> => typeof one === "object" && one !== null).map(tell);
}

function tell(decision: Record<string, unknown>): Told {
  const type = typeof decision.type === "string" ? decision.type : "notify_self";
  const kind = KINDS[type] ?? "plain";
  if (type === "set_state")
    return { kind, type, text: `${String(decision.key)} = ${JSON.stringify(decision.value ?? null)}` };
  if (type === "emit_event")
    return { kind, type, text: `${String(decision.event_type)} ${JSON.stringify(decision.payload ?? {})}` };
  return { kind, type, text: typeof decision.message === "string" ? decision.message : JSON.stringify(decision) };
}
