/** What a view shows while it waits, when it has something, and when that failed. */
import { RpcError } from "./error";
import { events } from "./events.svelte";

/** Milliseconds that events are collected for before one reload for all of them. */
const COLLECT = 250;

export interface LoadOptions {
  /** Load again after events of these types and below. */
  on?: string[];
  /** Load again after so many milliseconds while the tab is visible; with `on`, only while no events arrive. */
  every?: number;
}

export interface Loaded<T> {
  /** What there is; kept while it is loaded again, so that nothing jumps. */
  readonly value: T | undefined;
  readonly error: RpcError | undefined;
  readonly loading: boolean;
  reload(): Promise<void>;
}

/**
 * Loads when the component is created and whenever what `source` reads has changed. A result that
 * arrives after a newer load was started is dropped.
 *
 *     const rules = load(() => call("rules.list", { trigger: filter }), { on: ["rules"], every: 10_000 });
 */
export function load<T>(source: (signal: AbortSignal) => Promise<T>, options: LoadOptions = {}): Loaded<T> {
  let value = $state.raw<T>();
  let error = $state.raw<RpcError>();
  let loading = $state(true);
  let current: AbortController | null = null;

  async function run(): Promise<void> {
    current?.abort();
    const mine = new AbortController();
    current = mine;
    loading = true;
    try {
      const loaded = await source(mine.signal);
      if (current !== mine) return;
      value = loaded;
      error = undefined;
    } catch (thrown) {
      if (current !== mine) return;
      error = RpcError.of(thrown);
    }
    loading = false;
  }

  $effect(() => {
    void run();
    const { every, on } = options;
    const isDue = () => document.visibilityState === "visible" && !(on && events.live);
    const again = every ? setInterval(() => isDue() && void run(), every) : undefined;
    let collecting: ReturnType<typeof setTimeout> | undefined;
    const ignore = on ? events.on(on, () => (collecting ??= setTimeout(collected, COLLECT))) : undefined;
    const collected = () => {
      collecting = undefined;
      void run();
    };
    return () => {
      clearInterval(again);
      clearTimeout(collecting);
      ignore?.();
      current?.abort();
      current = null;
    };
  });

  return {
    get value() {
      return value;
    },
    get error() {
      return error;
    },
    get loading() {
      return loading;
    },
    reload: run,
  };
}
