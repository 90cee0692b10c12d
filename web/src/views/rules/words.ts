/** What the view calls things. */
import type { RuleSummary, RulesScope, Suppressed, Verdict } from "$lib/rpc/types";

export type Trigger = RuleSummary["trigger"];

export const TRIGGERS: Record<Trigger, string> = {
  on_query_start: "A question has come",
  on_turn_start: "Before each request to a model",
  on_turn_end: "After a request and the tools it asked for",
  on_tool_call: "Before a tool runs",
  on_tool_complete: "After a tool gave a result",
  on_tool_failure: "After a tool failed, was refused or cancelled",
  on_session_end: "A session is over",
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
  if (failing) return { kind: "bad", text: "failing", why: last_error ?? "It failed the last time that it was asked" };
  if (rule.liveness.evaluated === 0)
    return { kind: "info", text: "not asked yet", why: "Nothing has happened that it is asked about" };
  return { kind: "good", text: "on", why: "It is asked" };
}

export function whose(scope: RulesScope): string {
  if (typeof scope === "object") return `plugin ${scope.plugin}`;
  return { bundled: "comes with Dodona", user: "yours", project: "this project's" }[scope];
}

export const VERDICTS: Record<Verdict, { kind: Kind; text: string }> = {
  fired: { kind: "good", text: "fired" },
  dropped: { kind: "bad", text: "dropped" },
  not_fired: { kind: "plain", text: "not fired" },
  suppressed: { kind: "warn", text: "kept back" },
  disabled: { kind: "plain", text: "off" },
  failed: { kind: "bad", text: "failed" },
  other_trigger: { kind: "plain", text: "not asked" },
  outside_query: { kind: "plain", text: "outside of a query" },
  not_replayable: { kind: "info", text: "not replayable" },
};

export const SUPPRESSED: Record<Suppressed, string> = {
  disabled: "Its file says `enabled = false`.",
  switched_off: "You switched it off.",
  cooldown: "It rests: it has fired within its `cooldown`.",
  once_per_query: "It has fired in this query already (`once_per`).",
  once_per_session: "It has fired in this session already (`once_per`).",
};

/** What a rule can be called. */
export const isId = (text: string): boolean => /^[a-z0-9-]+$/.test(text);
export const NO_ID = "Small letters, digits and `-`, as in `no-main-writes`";

/** The id alone of rules that belong to no plugin. */
export const short = (rule: string): string => rule.replace(/^rules\//, "");

/** The last part of a path. */
export const fileName = (path: string): string => path.split(/[/:]/).at(-1) ?? path;
