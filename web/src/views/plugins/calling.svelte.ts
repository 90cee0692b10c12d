/** One call of a method that is only known at run time: its items as they come, or its one result. */
import {
  call,
  callAny,
  follow,
  type Item,
  isData,
  isDone,
  isError,
  isProgress,
  type MethodName,
  RpcError,
  start,
} from "$lib/rpc";

/** So many items are shown; a stream without end would otherwise fill the page. */
const MOST = 100;
/** Items that come fast are shown together, so that the page stays quick. */
const TOGETHER = 200;

export class Calling {
  running = $state(false);
  result = $state.raw<{ value: unknown } | null>(null);
  error = $state.raw<RpcError | null>(null);
  items = $state.raw<unknown[]>([]);
  left = $state(0);
  progress = $state<{ message: string; percentage: number | null } | null>(null);
  ending = $state<{ status: string; reason: string | null } | null>(null);
  private stop: () => void = () => {};
  private stream: string | null = null;
  private waiting: unknown[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly method: string,
    readonly streams: boolean,
  ) {}

  async run(params: Record<string, unknown>): Promise<void> {
    this.close();
    [this.running, this.result, this.error, this.progress, this.ending] = [true, null, null, null, null];
    [this.items, this.left] = [[], 0];
    try {
      if (this.streams) await this.open(params);
      else {
        this.result = { value: await callAny(this.method, params) };
        this.running = false;
      }
    } catch (thrown) {
      this.error = RpcError.of(thrown);
      this.running = false;
    }
  }

  /** Stops the call, and everything below it. */
  cancel(): void {
    if (this.stream && this.running) void call("hub.cancel", { stream_id: this.stream }).catch(() => {});
  }

  /** Reads no further; a call that runs goes on. */
  close(): void {
    this.stop();
    this.stop = () => {};
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting = [];
  }

  private show(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const all = [...this.items, ...this.waiting];
    this.waiting = [];
    this.left += Math.max(0, all.length - MOST);
    this.items = all.slice(-MOST);
  }

  private async open(params: Record<string, unknown>): Promise<void> {
    const stream = await start(this.method as MethodName, params as never);
    this.stream = stream;
    this.stop = follow(stream, {
      item: (item) => this.take(item),
      ended: () => {
        this.show();
        this.running = false;
      },
      failed: (error) => {
        [this.error, this.running] = [error, false];
      },
    });
  }

  private take(item: Item): void {
    if (isProgress(item)) this.progress = { message: item.message, percentage: item.percentage };
    else if (isError(item)) this.error = new RpcError(item.code, item.error, item.hint ?? null);
    else if (isDone(item)) {
      if (item.call_id === this.stream) this.ending = { status: item.status, reason: item.reason };
    } else if (isData(item)) {
      this.waiting.push(item.data);
      this.timer ??= setTimeout(() => this.show(), TOGETHER);
    }
  }
}
