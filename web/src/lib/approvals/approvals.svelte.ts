/** The approvals that wait for an answer, for the whole page. */
import { say } from "$lib/app/say.svelte";
import { call, events, RpcError } from "$lib/rpc";
import type { ApprovalRecord } from "$lib/rpc/types";

/** Milliseconds between two looks while no events arrive. */
const POLL = 3_000;

class Approvals {
  /** Newest first. */
  pending = $state.raw<ApprovalRecord[]>([]);
  loaded = $state(false);
  error = $state.raw<RpcError | null>(null);
  private started = false;
  private latest = 0;

  start(): void {
    if (this.started) return;
    this.started = true;
    void this.reload();
    events.on(["approval"], () => void this.reload());
    setInterval(() => {
      if (!events.live && document.visibilityState === "visible") void this.reload();
    }, POLL);
  }

  reload = async (): Promise<void> => {
    this.latest += 1;
    const mine = this.latest;
    try {
      const { approvals } = await call("hub.approvals", {}, { project: null });
      if (mine !== this.latest) return;
      this.announce(approvals);
      this.pending = approvals;
      this.error = null;
      this.loaded = true;
    } catch (thrown) {
      if (mine === this.latest) this.error = RpcError.of(thrown);
    }
  };

  private announce(now: ApprovalRecord[]): void {
    const known = new Set(this.pending.map((one) => one.id));
    const [first, ...more] = now.filter((one) => !known.has(one.id));
    if (!first) return;
    const others = more.length > 0 ? ` and ${more.length} more` : "";
    say.announce(`Approval needed: ${first.message}${others}`);
  }
}

export const approvals = new Approvals();
