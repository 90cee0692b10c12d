/** A request to a model as text: to be read, compared and copied. */
import { call } from "$lib/rpc";
import type { RequestResult } from "$lib/rpc/types";

export interface SentMessage {
  role: "user" | "assistant" | "tool";
  content: string;
  tool_calls?: { id: string; name: string; arguments: unknown }[];
}

export interface SentRequest extends Omit<RequestResult, "messages" | "response"> {
  messages: SentMessage[];
  response: SentMessage | null;
}

export async function requestOf(query: string, turn: number, signal: AbortSignal): Promise<SentRequest> {
  return (await call("agent.request", { query_id: query, turn }, { signal })) as SentRequest;
}

/** What a message says, and the tools it calls. JSON is indented: tools return it on one line. */
export function textOf(message: SentMessage): string {
  const calls = (message.tool_calls ?? []).map((one) => `${one.name} ${JSON.stringify(one.arguments, null, 2)}`);
  return [readable(message.content), ...calls].filter(Boolean).join("\n\n");
}

/** The whole request, one part below the other. */
export function requestText(request: SentRequest): string {
  const parts = request.messages.map((message) => `## ${message.role}\n${textOf(message)}`);
  return [`## system\n${request.system}`, `## tools\n${request.tools.join("\n")}`, ...parts].join("\n\n");
}

function readable(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
