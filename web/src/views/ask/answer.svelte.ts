/** One question and everything that came of it, as it is shown. */
import { type DoneStatus, dataOf, follow, type Item, isData, isDone, isError, isProgress } from "$lib/rpc";
import type { AgentResponse, ArchivedExchange, Ending, QueryInfo, Source, Usage } from "$lib/rpc/types";

export interface TextPart {
  kind: "text";
  text: string;
}

export interface ReasoningPart {
  kind: "reasoning";
  text: string;
}

export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  ending: Ending | null;
  error: string | null;
  ms: number | null;
}

export interface NoticePart {
  kind: "notice";
  message: string;
  plugin: string | null;
  /** The rule that says so, as `plugin/id`. */
  rule: string | null;
  priority: string | null;
}

export interface ApprovalPart {
  kind: "approval";
  id: string;
  method: string;
  message: string;
  params: unknown;
  /** `pending` until somebody, here or elsewhere, has answered. */
  state: string;
  by: string | null;
}

export interface SteerPart {
  kind: "steer";
  text: string;
}

export type Part = TextPart | ReasoningPart | ToolPart | NoticePart | ApprovalPart | SteerPart;

export type State = "running" | "interrupted" | DoneStatus;

export class Answer {
  state = $state<State>("running");
  reason = $state<string | null>(null);
  hint = $state<string | null>(null);
  parts = $state<Part[]>([]);
  sources = $state<Source[]>([]);
  uncited = $state<string[]>([]);
  usage = $state<Usage | null>(null);
  cost = $state<number | null>(null);
  model = $state<string | null>(null);
  /** What it is doing, while it does. */
  progress = $state<string | null>(null);
  /** How full the conversation's window is, as the last request saw it. */
  window = $state<{ used: number; budget: number } | null>(null);
  queryId = $state<string | null>(null);
  /** The question, to rewind to. */
  firstExchange = $state<string | null>(null);
  /** The last message of it, to fork from. */
  lastExchange = $state<string | null>(null);
  /** The call that answers; a root call has the id of its stream. */
  callId: string | null = null;
  stream = $state<string | null>(null);

  private turns = 0;
  private steers: { turn: number; text: string }[] = [];
  private stopReading: (() => void) | null = null;
  /** Whether it was read from its stream, which knows more than what is stored of a conversation. */
  private isWhole = false;

  constructor(
    readonly question: string,
    readonly startedAt: string,
  ) {}

  /** From what is stored of a conversation. */
  static stored(info: QueryInfo, exchanges: ArchivedExchange[]): Answer {
    const answer = new Answer(info.question, info.started_at);
    answer.queryId = info.id;
    answer.state = info.state;
    answer.reason = info.reason ?? null;
    answer.model = info.model ?? null;
    answer.callId = info.call_id ?? null;
    answer.stream = answer.callId?.split(".")[0] ?? null;
    answer.firstExchange = exchanges[0]?.exchange.id ?? null;
    answer.lastExchange = exchanges.at(-1)?.exchange.id ?? null;
    answer.parts = exchanges.slice(1).flatMap(partsOf);
    const said = exchanges.slice(1).filter((one) => isSteering(one.exchange));
    answer.steers = said.map((one) => ({ turn: one.turn, text: one.exchange.content }));
    return answer;
  }

  get isRunning(): boolean {
    return this.state === "running";
  }

  /** The text, to be copied. */
  get text(): string {
    return this.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n");
  }

  /** Reads its stream from the beginning, and goes on while it runs. */
  read(onend?: () => void): void {
    const stream = this.stream;
    if (!stream || this.isWhole || this.stopReading) return;
    const stored = this.parts;
    let first = true;
    this.stopReading = follow(stream, {
      item: (item) => {
        // What was stored is shown until there is something better.
        if (first) [this.parts, this.turns, first] = [[], 0, false];
        this.take(item);
      },
      ended: () => {
        this.isWhole = true;
        this.stopReading = null;
        onend?.();
      },
      failed: () => {
        // Streams are kept for a time, conversations for good.
        if (first) this.parts = stored;
        this.isWhole = true;
        if (this.isRunning) this.state = "interrupted";
        onend?.();
      },
    });
  }

  close(): void {
    this.stopReading?.();
    this.stopReading = null;
  }

  steered(text: string): void {
    this.parts.push({ kind: "steer", text });
  }

  private take(item: Item): void {
    const root = item.call_id === (this.callId ?? this.stream);
    this.takeApproval(item);
    if (!root) return;
    if (isData(item)) this.takeData(item);
    else if (isProgress(item)) this.progress = item.message;
    else if (isError(item)) [this.reason, this.hint] = [item.error, item.hint ?? null];
    else if (isDone(item)) this.end(item.status, item.reason);
  }

  private takeApproval(item: Item): void {
    const asked = dataOf(item, "ApprovalRequest");
    if (asked) {
      const { approval_id: id, method, message, params } = asked;
      this.parts.push({ kind: "approval", id, method, message, params, state: "pending", by: null });
    }
    const answered = dataOf(item, "ApprovalAnswer");
    const part = this.parts.find((one) => one.kind === "approval" && one.id === answered?.approval_id);
    if (answered && part?.kind === "approval") [part.state, part.by] = [answered.state, answered.answered_by];
  }

  private takeData(item: Item): void {
    const text = dataOf(item, "TextDelta");
    if (text) this.say("text", text.text);
    const thought = dataOf(item, "ReasoningDelta");
    if (thought) this.say("reasoning", thought.text);
    const call = dataOf(item, "ToolCall");
    if (call) {
      const { id, arguments: given } = call;
      this.parts.push({
        kind: "tool",
        id,
        name: call.method ?? call.name,
        arguments: given,
        ending: null,
        error: null,
        ms: null,
      });
    }
    const result = dataOf(item, "ToolResult");
    const tool = this.parts.findLast((part) => part.kind === "tool" && part.id === result?.id);
    if (result && tool?.kind === "tool")
      [tool.ending, tool.error, tool.ms] = [result.ending, result.error, result.duration_ms];
    const told = dataOf(item, "Notification");
    if (told) {
      this.parts.push({
        kind: "notice",
        message: told.message,
        plugin: told.plugin ?? null,
        rule: told.rule ?? null,
        priority: told.priority ?? null,
      });
    }
    const source = dataOf(item, "Source");
    if (source) this.sources[source.number - 1] = source.source;
    this.account(item);
    if (isData(item) && item.content_type === "AgentResponse") this.conclude(item.data as AgentResponse);
  }

  /** Deltas of one kind that follow each other are one part. */
  private say(kind: "text" | "reasoning", text: string): void {
    this.progress = null;
    const last = this.parts.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.parts.push({ kind, text });
  }

  /** A request to the model is over. */
  private account(item: Item): void {
    const used = dataOf(item, "Usage");
    if (!used) return;
    this.turns += 1;
    const sum = this.usage ?? { input_tokens: 0, output_tokens: 0 };
    this.usage = {
      input_tokens: (sum.input_tokens ?? 0) + (used.usage.input_tokens ?? 0),
      output_tokens: (sum.output_tokens ?? 0) + (used.usage.output_tokens ?? 0),
    };
    if (used.cost_micros !== null) this.cost = (this.cost ?? 0) + used.cost_micros;
    const { tokens_used, token_budget, query_id } = used.snapshot as Record<string, number | string | undefined>;
    if (typeof tokens_used === "number" && typeof token_budget === "number")
      this.window = { used: tokens_used, budget: token_budget };
    if (typeof query_id === "string") this.queryId = query_id;
    for (const steer of this.steers.filter((one) => one.turn === this.turns)) this.steered(steer.text);
  }

  private conclude(response: AgentResponse): void {
    this.sources = response.sources;
    this.uncited = response.uncited;
    this.model = response.model;
    this.queryId = response.query_id;
    this.usage = response.usage;
    this.cost = response.cost_micros ?? null;
  }

  private end(status: DoneStatus, reason: string | null): void {
    this.progress = null;
    this.state = reason === "interrupted" ? "interrupted" : status;
    if (reason && this.reason === null) this.reason = reason;
    for (const part of this.parts) {
      if (part.kind === "tool" && part.ending === null) part.ending = "interrupted";
      if (part.kind === "approval" && part.state === "pending") part.state = "expired";
    }
  }
}

/** Whether a message was sent by the user while the query was running. Older ones have no origin. */
function isSteering(exchange: ArchivedExchange["exchange"]): boolean {
  return exchange.role === "user" && (!exchange.origin || exchange.origin === "steering");
}

function partsOf({ exchange }: ArchivedExchange): Part[] {
  if (isSteering(exchange)) return [{ kind: "steer", text: exchange.content }];
  // Notices and passages that were looked up are for the model.
  if (exchange.role === "user") return [];
  if (exchange.role === "tool") return [];
  const text: Part[] = exchange.content ? [{ kind: "text", text: exchange.content }] : [];
  const tools = (exchange.tool_calls ?? []).map(
    (call): ToolPart => ({
      kind: "tool",
      id: call.id,
      name: call.name.replace("_", "."),
      arguments: call.arguments,
      ending: call.ending ?? null,
      error: null,
      ms: call.duration_ms ?? null,
    }),
  );
  return [...text, ...tools];
}
