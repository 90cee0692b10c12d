/**
 * Events of the server as they happen. All views of a tab share one `events.watch`:
 *
 *     $effect(() => events.on(["approval"], reload));
 */
import { untrack } from "svelte";
import { callAny } from "./call";
import { RpcError } from "./error";
import { isData, isDone } from "./items";
import { listen } from "./socket";

/**
 * What is watched. Not `tool.call`: the page's own reads are tool calls too, so a view that reloads on them
 * would never rest.
 */
const TYPES = ["approval", "query", "session", "agent.turn", "rules", "plugin", "custom"];

/** Milliseconds before another try, doubled up to the maximum while tries fail. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 30_000;

interface Listener {
  types: string[];
  run: () => void;
}

class Events {
  /** Whether events arrive. Views poll while they do not. */
  live = $state(false);
  private listeners = new Set<Listener>();
  private position: number | null = null;
  private stop: (() => void) | null = null;
  private wait = FIRST_WAIT;
  private started = false;

  /** Call `run` after each event of these types and below. The result ends that. */
  on(types: string[], run: () => void): () => void {
    const listener = { types, run };
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Watch from now on. */
  start(): void {
    if (this.started) return;
    this.started = true;
    void this.watch();
  }

  private async watch(): Promise<void> {
    try {
      // Not detached: without a reader the server ends it, so a closed tab leaves nothing running. Without a
      // project: approvals of another project count too.
      const params = { types: TYPES, ...(this.position === null ? {} : { after: this.position }) };
      const started = await callAny("hub.subscribe", { method: "events.watch", params }, { project: null });
      this.follow((started as { stream_id: string }).stream_id);
    } catch (thrown) {
      this.live = false;
      // A token without the scope `events:read` cannot watch; its views poll.
      if (RpcError.of(thrown).code.startsWith("auth.")) return;
      this.again();
    }
  }

  private follow(stream: string): void {
    let seq = 0;
    const end = () => {
      this.stop?.();
      this.stop = null;
      this.again();
    };
    this.stop = listen(stream, {
      after: () => seq,
      item: (item) => {
        if (item.seq <= seq) return;
        seq = item.seq;
        this.wait = FIRST_WAIT;
        if (isData(item)) this.take(item.data as { position: number; type: string });
        else if (isDone(item) && item.call_id === stream) end();
      },
      failed: end,
    });
    this.live = true;
    // What happened before the watch began is unknown: everything is read once more.
    if (this.position === null) for (const { run } of this.listeners) run();
  }

  private take({ position, type }: { position: number; type: string }): void {
    this.position = position;
    const concerns = (wanted: string) => type === wanted || type.startsWith(`${wanted}.`);
    for (const { types, run } of [...this.listeners]) if (types.some(concerns)) untrack(run);
  }

  private again(): void {
    this.live = false;
    setTimeout(() => void this.watch(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}

export const events = new Events();
