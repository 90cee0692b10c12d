/** What a view shows while it waits, when it has something, and when that failed. */
import { RpcError } from "./error";

export interface Loaded<T> {
  /** What there is; kept while it is loaded again, so that nothing jumps. */
  readonly value: T | undefined;
  readonly error: RpcError | undefined;
  readonly loading: boolean;
  reload(): Promise<void>;
}

/**
 * Loads when the component is made and whenever what `source` reads has changed; an answer that
 * comes too late is dropped. `every` repeats it after that many milliseconds while the tab is seen.
 *
 *     const rules = load(() => call("rules.list", { trigger: filter }));
 */
export function load<T>(source: (signal: AbortSignal) => Promise<T>, options: { every?: number } = {}): Loaded<T> {
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
    const every = options.every;
    const again = every ? setInterval(() => document.visibilityState === "visible" && void run(), every) : undefined;
    return () => {
      clearInterval(again);
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
