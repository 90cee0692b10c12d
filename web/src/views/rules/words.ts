/** What the view calls things. */
import type { RuleSummary, RulesScope, Suppressed, Verdict } from "$lib/rpc/types";

export type Trigger = RuleSummary["trigger"];

export const TRIGGERS: Record<Trigger, string> = {
  on_query_start: "When a question arrives",
  on_turn_start: "Before each model request",
  on_turn_end: "After a model request and its tool calls",
  on_tool_call: "Before a tool call",
  on_tool_complete: "After a successful tool call",
  on_tool_failure: "After a failed, denied or cancelled tool call",
  on_session_end: "When a session ends",
};

export type Kind = "plain" | "good" | "warn" | "bad" | "info" | "accent";

export interface State {
  kind: Kind;
  text: string;
  why: string;
}

export function stateOf(rule: RuleSummary): State {
  if (rule.inactive === "project_not_trusted")
    return { kind: "warn", text: "inactive", why: "The project is not trusted; review it with `dodona trust show`" };
  if (rule.inactive) return { kind: "warn", text: "inactive", why: "It has changed since the project was trusted" };
  if (rule.switched_off) return { kind: "plain", text: "off", why: "You switched it off" };
  if (!rule.enabled) return { kind: "plain", text: "off in its file", why: "Its file says `enabled = false`" };
  const { last_failed, last_evaluated, failed, last_error } = rule.liveness;
  const failing = failed > 0 && last_failed && (!last_evaluated || last_failed >= last_evaluated);
  if (failing) return { kind: "bad", text: "failing", why: last_error ?? "The last evaluation failed" };
  if (rule.liveness.evaluated === 0)
    return { kind: "info", text: "not evaluated yet", why: "No event of its trigger has happened" };
  return { kind: "good", text: "active", why: "Evaluated at its trigger" };
}

export function whose(scope: RulesScope): string {
  if (typeof scope === "object") return `plugin ${scope.plugin}`;
  return { bundled: "built in", user: "yours", project: "this project" }[scope];
}

export const VERDICTS: Record<Verdict, { kind: Kind; text: string }> = {
  fired: { kind: "good", text: "fired" },
  dropped: { kind: "bad", text: "dropped" },
  not_fired: { kind: "plain", text: "not fired" },
  suppressed: { kind: "warn", text: "suppressed" },
  disabled: { kind: "plain", text: "off" },
  failed: { kind: "bad", text: "failed" },
  other_trigger: { kind: "plain", text: "other trigger" },
  outside_query: { kind: "plain", text: "outside of a query" },
  not_replayable: { kind: "info", text: "not replayable" },
};

export const SUPPRESSED: Record<Suppressed, string> = {
  disabled: "`enabled = false` in its file.",
  switched_off: "You switched it off.",
  cooldown: "It fired within its `cooldown`.",
  once_per_query: "It has fired in this query already (`once_per`).",
  once_per_session: "It has fired in this session already (`once_per`).",
};

/** What a rule can be called. */
export const isId = (text: string): boolean => /^[a-z0-9-]+$/.test(text);
export const NO_ID = "Lower-case letters, digits and `-`, such as `no-main-writes`";

/** The id alone of rules that belong to no plugin. */
export const short = (rule: string): string => rule.replace(/^rules\//, "");

/** The last part of a path. */
export const fileName = (path: string): string => path.split(/[/:]/).at(-1) ?? path;
