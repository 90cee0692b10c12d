/** A conversation as the page knows it: what was asked, and the question that is being answered. */
import { call, start } from "$lib/rpc";
import type { Archive, OracleContext } from "$lib/rpc/types";
import { Answer } from "./answer.svelte";

/** How many of the latest answers are read from their streams at once; older ones when they are seen. */
const READ_AT_ONCE = 6;

export class Conversation {
  answers = $state<Answer[]>([]);
  context = $state.raw<OracleContext | null>(null);
  loaded = $state(false);

  constructor(readonly id: string) {}

  /** The question that is being answered now. */
  get running(): Answer | undefined {
    return this.answers.find((answer) => answer.isRunning);
  }

  /** How full the window is: as the last request saw it, or as it is stored. */
  get window(): { used: number; budget: number } {
    const live = this.answers.findLast((answer) => answer.window !== null)?.window;
    return live ?? { used: this.context?.tokens_used ?? 0, budget: this.context?.token_budget ?? 0 };
  }

  get cost(): number | null {
    const known = this.answers.flatMap((answer) => (answer.cost === null ? [] : [answer.cost]));
    return known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0);
  }

  /** Loads what is stored. Answers that are known already stay as they are: they know more. */
  async load(): Promise<void> {
    // Without a format it is the archive.
    const archive = (await call("agent.export", { context_id: this.id })) as Archive;
    this.context = archive.context;
    const known = new Map(this.answers.map((answer) => [answer.stream ?? answer.queryId, answer]));
    this.answers = answersOf(archive).map((fresh) => {
      const mine = known.get(fresh.stream ?? fresh.queryId);
      if (!mine) return fresh;
      mine.queryId = fresh.queryId;
      mine.lastExchange = fresh.lastExchange;
      return mine;
    });
    for (const waiting of known.values()) {
      // Asked, and not yet stored: it waits for its turn.
      if (waiting.isRunning && !this.answers.includes(waiting)) this.answers.push(waiting);
    }
    for (const answer of this.answers.slice(-READ_AT_ONCE)) this.read(answer);
    this.loaded = true;
  }

  read(answer: Answer): void {
    const live = answer.isRunning;
    answer.read(() => {
      if (live) void this.load();
    });
  }

  async ask(message: string, model: string | null): Promise<void> {
    const mine = new Answer(message, new Date().toISOString());
    this.answers.push(mine);
    try {
      mine.stream = await start("agent.chat", { message, context_id: this.id, model });
    } catch (thrown) {
      this.answers = this.answers.filter((other) => other !== mine);
      throw thrown;
    }
    this.read(mine);
  }

  async steer(message: string): Promise<void> {
    const running = this.running;
    await call("agent.steer", { message, context_id: this.id });
    running?.steered(message);
  }

  async stop(): Promise<void> {
    const stream = this.running?.stream;
    if (stream) await call("hub.cancel", { stream_id: stream });
  }

  /** Copies the conversation up to an answer; the id of the copy. */
  async fork(answer: Answer): Promise<string> {
    const copied = await call("agent.fork", { context_id: this.id, exchange_id: answer.lastExchange });
    return copied.context_id;
  }

  close(): void {
    for (const answer of this.answers) answer.close();
  }
}

function answersOf(archive: Archive): Answer[] {
  const exchanges = (archive.exchanges ?? []).filter((one) => !one.rewound_at);
  const byQuery = new Map<string, typeof exchanges>();
  for (const one of exchanges) {
    const list = byQuery.get(one.query_id);
    if (list) list.push(one);
    else byQuery.set(one.query_id, [one]);
  }
  // A query all of which was taken back is not shown.
  const shown = (archive.queries ?? []).filter((query) => byQuery.has(query.id));
  return shown.map((query) => Answer.stored(query, byQuery.get(query.id) ?? []));
}
