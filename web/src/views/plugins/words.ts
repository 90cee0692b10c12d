/** What the view calls things. */
import type { AgentProblem as FileProblem, PluginState } from "$lib/rpc/types";

export type Kind = "plain" | "good" | "warn" | "bad" | "info" | "accent";

export const STATES: Record<PluginState, { kind: Kind; text: string; about: string }> = {
  discovered: { kind: "info", text: "discovered", about: "Named by the roster or found in a directory" },
  loaded: { kind: "info", text: "loaded", about: "Read and right, not activated" },
  starting: { kind: "info", text: "starting", about: "Something that it consists of is being started" },
  active: { kind: "good", text: "active", about: "Its methods can be called and its hooks run" },
  failed: { kind: "bad", text: "failed", about: "It could not be loaded or activated; nothing of it stays" },
  disabled: { kind: "plain", text: "disabled", about: "The roster says `enabled = false`" },
  skipped_dependency: { kind: "warn", text: "skipped", about: "Something that it needs is not active" },
};

const CAPABILITIES: Record<string, string> = {
  tool_registry: "Has a say in which tools there are",
  prompt: "Adds to the system prompt",
  preload: "Has a say in what is looked up before a question",
  llm_io: "Sees and changes what goes to a model and comes back",
  tool_exec: "Sees, changes and refuses calls of tools",
  daemon_server: "Registers with the server",
  turn_lifecycle: "Receives events of questions, turns and sessions",
};

export function capability(name: string): string {
  const [kind = "", rest = ""] = name.split(/:(.*)/s);
  if (kind === "call") return `Calls methods of ${rest}`;
  if (kind === "net") return `Talks to ${rest}`;
  if (kind === "fs") return `Reads and writes below ${rest}`;
  return CAPABILITIES[name] ?? "";
}

/** A reason without the command at its end, and that command: "…; run `dodona plugins grant a b`". */
export function reasonAndCommand(reason: string): { text: string; command: string | null } {
  const found = /^(.*?)[;,.]?\s*run `(dodona [^`]+)`\.?$/s.exec(reason);
  return found ? { text: found[1] ?? reason, command: found[2] ?? null } : { text: reason, command: null };
}

export function placed(problem: FileProblem): string {
  const place = problem.place ? `:${problem.place.line}:${problem.place.column}` : "";
  return `${problem.path}${place}`;
}
