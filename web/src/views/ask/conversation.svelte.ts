/** A conversation as the page shows it: stored questions, and those that were sent from this tab. */
import { call, start } from "$lib/rpc";
import type { Archive, OracleContext } from "$lib/rpc/types";
import { Answer, type ApprovalPart } from "./answer.svelte";

/** How many of the latest answers are read from their streams at once. Older ones are read when scrolled to. */
const READ_AT_ONCE = 6;

export class Conversation {
  answers = $state<Answer[]>([]);
  context = $state.raw<OracleContext | null>(null);
  loaded = $state(false);
  /** `null` until the first question of a new conversation has created it on the server. */
  id = $state<string | null>(null);
  /** Questions sent from this tab that no loaded archive has contained yet. */
  private sent = new Set<Answer>();
  /** Number of the latest `load()`: an older one that returns later must not replace newer data. */
  private loads = 0;

  constructor(id: string | null) {
    this.id = id;
    // A new conversation has nothing to load.
    this.loaded = id === null;
  }

  /** The question that is being answered now. */
  get running(): Answer | undefined {
    return this.answers.find((answer) => answer.isRunning);
  }

  /** Approvals that running answers wait for, oldest first. */
  get pending(): ApprovalPart[] {
    const parts = this.answers.filter((answer) => answer.isRunning).flatMap((answer) => answer.parts);
    return parts.filter((part): part is ApprovalPart => part.kind === "approval" && part.state === "pending");
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

  /** Load the stored questions. Answers that are shown already stay: their stream has more than the archive. */
  async load(): Promise<void> {
    if (this.id === null) return;
    this.loads += 1;
    const mine = this.loads;
    // Without a format it is the archive.
    const archive = (await call("agent.export", { context_id: this.id })) as Archive;
    if (mine !== this.loads) return;
    this.context = archive.context;
    const known = new Map(this.answers.map((answer) => [answer.stream ?? answer.queryId, answer]));
    const stored = answersOf(archive).map((fresh) => {
      const shown = known.get(fresh.stream ?? fresh.queryId);
      if (!shown) return fresh;
      this.sent.delete(shown);
      shown.queryId = fresh.queryId;
      shown.firstExchange = fresh.firstExchange;
      shown.lastExchange = fresh.lastExchange;
      return shown;
    });
    // The server stores a question a moment after it accepts it, so an archive may be older than
    // what was sent from here. Such a question stays until an archive contains it.
    this.answers = [...stored, ...this.answers.filter((answer) => this.sent.has(answer))];
    for (const answer of this.answers.slice(-READ_AT_ONCE)) this.read(answer);
    this.loaded = true;
  }

  read(answer: Answer): void {
    const live = answer.isRunning;
    answer.read(() => {
      if (live) void this.load().catch(() => {});
    });
  }

  /** Show the question at once, then send it. `create` creates the conversation if there is none yet. */
  async ask(message: string, model: string | null, create: () => Promise<string>): Promise<void> {
    const mine = new Answer(message, new Date().toISOString());
    this.sent.add(mine);
    this.answers.push(mine);
    try {
      this.id ??= await create();
      mine.stream = await start("agent.chat", { message, context_id: this.id, model });
    } catch (thrown) {
      this.sent.delete(mine);
      this.answers = this.answers.filter((other) => other !== mine);
      throw thrown;
    }
    // An archive that was loaded meanwhile may have brought the same question.
    this.answers = this.answers.filter((other) => other === mine || other.stream !== mine.stream);
    this.read(mine);
  }

  async steer(message: string): Promise<void> {
    const running = this.running;
    if (this.id === null) return;
    await call("agent.steer", { message, context_id: this.id });
    running?.steered(message);
  }

  async stop(): Promise<void> {
    const stream = this.running?.stream;
    if (stream) await call("hub.cancel", { stream_id: stream });
  }

  /** Remove a question and everything after it from the conversation. The originals stay in exports. */
  async rewind(answer: Answer): Promise<void> {
    await call("agent.rewind", { context_id: this.id, exchange_id: answer.firstExchange as string });
    const at = this.answers.indexOf(answer);
    for (const gone of this.answers.slice(at)) gone.close();
    this.answers = this.answers.slice(0, at);
  }

  /** Copy the conversation up to an answer. Returns the id of the copy. */
  async fork(answer: Answer): Promise<string> {
    const copied = await call("agent.fork", { context_id: this.id as string, exchange_id: answer.lastExchange });
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
  // A query whose exchanges were all rewound is not shown.
  const shown = (archive.queries ?? []).filter((query) => byQuery.has(query.id));
  return shown.map((query) => Answer.stored(query, byQuery.get(query.id) ?? []));
}
