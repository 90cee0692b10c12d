/** A test to start from, for a rule of each trigger: the context has the fields that the trigger provides. */
import type { Trigger } from "./words";

const CONTEXTS: Record<Trigger, string> = {
  on_query_start: '{ event = { payload = { question = "How do we deploy?" } } }',
  on_turn_start: "{ turn = { iteration_count = 6 } }",
  on_turn_end: "{ turn = { iteration_count = 6 } }",
  on_tool_call: '{ call = { tool_name = "vault_write", arguments = { path = "notes/a.md" } } }',
  on_tool_complete: '{ result = { tool_name = "vault_search", duration_ms = 2500.0 } }',
  on_tool_failure: '{ result = { tool_name = "vault_search", duration_ms = 2500.0 } }',
  on_session_end: "{ event = { payload = { turns = 12 } } }",
};

export function sampleTest(trigger: Trigger): string {
  return `[[tests]]\nname = "fires"\ncontext = ${CONTEXTS[trigger]}\nexpect = { fired = true }`;
}

/** The trigger that a rule's text names. */
export function triggerIn(text: string): Trigger {
  const found = /^\s*trigger\s*=\s*["'](\w+)["']/m.exec(text)?.[1];
  return found && found in CONTEXTS ? (found as Trigger) : "on_turn_start";
}
