/** A rule's text on the way to its file: checked and tested as it is typed, backtested on demand, saved last. */
import { say } from "$lib/app/say.svelte";
import { call, follow, isData, isDone, isError, isProgress, RpcError, start } from "$lib/rpc";
import type { Backtest, RuleSourceText, RulesProblem, Tests } from "$lib/rpc/types";
import { wholeBacktest } from "./whole";

/** What is edited: a file that is there, or one that is not yet. */
export interface Draft {
  scope: "user" | "project";
  file: string;
  /** What the file has; empty for a new one. */
  saved: string;
  text: string;
  version: string | null;
  scripts: Record<string, string>;
}

/** How long nobody typed before the text is looked at. */
const PAUSE = 350;

export const draftOf = (source: RuleSourceText): Draft => ({
  scope: source.scope === "project" ? "project" : "user",
  file: source.file,
  saved: source.text,
  text: source.text,
  version: source.locked ? null : source.version,
  scripts: source.scripts,
});

export class Bench {
  text = $state("");
  tests = $state.raw<Tests | null>(null);
  /** The text that the tests are about. */
  private tested = $state("");
  checkFailed = $state.raw<RpcError | null>(null);
  backtest = $state.raw<Backtest | null>(null);
  /** The text that the backtest is about. */
  private backtested = $state("");
  progress = $state("");
  running = $state(false);
  saving = $state(false);
  refused = $state.raw<RpcError | null>(null);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stop: () => void = () => {};
  private stream: string | null = null;

  constructor(readonly draft: Draft) {
    this.text = draft.text;
  }

  readonly changed = $derived.by(() => this.text !== this.draft.saved);
  /** Whether the tests say how the text is now. */
  readonly current = $derived.by(() => this.tests !== null && this.tested === this.text);
  readonly backtestIsCurrent = $derived.by(() => this.backtest !== null && this.backtested === this.text);
  readonly problems = $derived.by((): RulesProblem[] => this.tests?.problems ?? []);
  readonly errors = $derived.by(() => this.problems.filter((problem) => problem.severity === "error").length);

  /** Looks at the text once nobody types; called whenever it changes. */
  look(): () => void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), this.tests ? PAUSE : 0);
    return () => clearTimeout(this.timer);
  }

  async check(): Promise<void> {
    const text = this.text;
    try {
      const tests = await call("rules.test", { texts: [this.sent(text)] });
      if (text !== this.text) return;
      this.tests = tests;
      this.tested = text;
      this.checkFailed = null;
    } catch (thrown) {
      if (text === this.text) this.checkFailed = RpcError.of(thrown);
    }
  }

  async runBacktest(since: string | null): Promise<void> {
    this.cancel();
    const text = this.text;
    [this.running, this.progress, this.refused] = [true, "", null];
    try {
      const stream = await start("rules.backtest", { rules: [this.sent(text)], since, examples: 20 });
      this.stream = stream;
      this.stop = follow(stream, {
        item: (item) => {
          if (isProgress(item)) this.progress = item.message;
          else if (isError(item)) say.tell("error", item.error, item.hint ?? null);
          else if (isData(item)) {
            this.backtest = wholeBacktest(item.data as Backtest);
            this.backtested = text;
          } else if (isDone(item)) this.running = false;
        },
        ended: () => {
          this.running = false;
        },
        failed: (error) => {
          this.running = false;
          say.failed(error);
        },
      });
    } catch (thrown) {
      this.running = false;
      say.failed(thrown);
    }
  }

  cancel(): void {
    if (this.running && this.stream) void call("hub.cancel", { stream_id: this.stream }).catch(() => {});
    this.stop();
    this.running = false;
  }

  /** The rule that was saved, as `plugin/id`; nothing where it was not. */
  async save(): Promise<string | null> {
    const { scope, file, version } = this.draft;
    [this.saving, this.refused] = [true, null];
    try {
      const saved = await call("rules.write", { scope, file, text: this.text, if_version: version });
      say.tell("success", `${file} is saved and in use`);
      return saved.rule;
    } catch (thrown) {
      this.refused = RpcError.of(thrown);
      return null;
    } finally {
      this.saving = false;
    }
  }

  private sent(text: string): { path: string; text: string; scripts: Record<string, string> } {
    return { path: this.draft.file, text, scripts: this.draft.scripts };
  }
}
