/** What a call emits, as the wire has it (docs/reference/wire.md). */
import type { Ending, Source, Usage } from "./types";

interface Head {
  call_id: string;
  seq: number;
  plugin_path: string;
}

export interface ProgressItem extends Head {
  message: string;
  percentage: number | null;
}

export interface DataItem extends Head {
  content_type: string;
  data: unknown;
}

export interface ErrorItem extends Head {
  error: string;
  code: string;
  recoverable: boolean;
  hint?: string;
}

export type DoneStatus = "complete" | "cancelled" | "refused" | "limited" | "failed";

export interface DoneItem extends Head {
  status: DoneStatus;
  reason: string | null;
}

export type Item = ProgressItem | DataItem | ErrorItem | DoneItem;

export const isData = (item: Item): item is DataItem => "content_type" in item;
export const isProgress = (item: Item): item is ProgressItem => "percentage" in item;
export const isError = (item: Item): item is ErrorItem => "recoverable" in item;
export const isDone = (item: Item): item is DoneItem => "status" in item;

/** The data of `agent.chat`, by content type. */
export interface ChatData {
  TextDelta: { text: string };
  ReasoningDelta: { text: string };
  /** A part of the arguments of a call that the model is writing, as JSON text. */
  ToolCallDelta: { id: string; name: string; arguments: string };
  ToolCall: { id: string; name: string; method: string | null; arguments: Record<string, unknown> };
  ToolResult: {
    id: string;
    name: string;
    status: "pending" | "success" | "error";
    ending: Ending;
    error: string | null;
    duration_ms: number;
  };
  Source: { number: number; source: Source };
  Notification: { message: string; plugin?: string; rule?: string; priority?: string; category?: string };
  Usage: { usage: Usage; estimated: boolean; cost_micros: number | null; snapshot: Record<string, unknown> };
  ApprovalRequest: { approval_id: string; method: string; plugin: string | null; message: string; params: unknown };
  ApprovalAnswer: { approval_id: string; state: string; answered_by: string | null; reason: string | null };
}

/** The data of an item, if it is of this content type. */
export function dataOf<K extends keyof ChatData>(item: Item, kind: K): ChatData[K] | undefined {
  return isData(item) && item.content_type === kind ? (item.data as ChatData[K]) : undefined;
}
