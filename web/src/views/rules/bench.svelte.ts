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

/** The script that a text names; the server has the last word on what it means. */
const namedIn = (text: string): string | null =>
  /^[ \t]*script[ \t]*=[ \t]*["']([^"'\n]+)["']/m.exec(text)?.[1] ?? null;

/** What a script says that is not there yet. */
const NEW_SCRIPT = "-- Fires where this returns true, or an action.\nreturn false\n";

export class Bench {
  text = $state("");
  /** The scripts as they are edited, by path. */
  private scripts = $state<Record<string, string>>({});
  /** What the files have. */
  private saved = $state.raw({ text: "", scripts: {} as Record<string, string> });
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
    this.scripts = { ...draft.scripts };
    this.saved = { text: draft.saved, scripts: draft.scripts };
  }

  /** The script that the text names. */
  readonly named = $derived.by(() => namedIn(this.text));
  readonly scriptChanged = $derived.by(() => this.named !== null && this.script !== this.saved.scripts[this.named]);
  readonly changed = $derived.by(() => this.text !== this.saved.text || this.scriptChanged);
  /** Whether somebody has written something that no file has. */
  readonly written = $derived.by(() => this.changed && (this.text !== this.draft.text || this.scriptChanged));
  /** All that is tested and saved, as one text to compare. */
  private readonly whole = $derived.by(() => JSON.stringify([this.text, this.sentScripts()]));
  /** Whether the tests say how the text is now. */
  readonly current = $derived.by(() => this.tests !== null && this.tested === this.whole);
  readonly backtestIsCurrent = $derived.by(() => this.backtest !== null && this.backtested === this.whole);
  readonly problems = $derived.by((): RulesProblem[] => this.tests?.problems ?? []);
  readonly errors = $derived.by(() => this.problems.filter((problem) => problem.severity === "error").length);

  /** The text of that script; one that is not there yet begins with a few lines. */
  get script(): string {
    return this.named === null ? "" : (this.scripts[this.named] ?? NEW_SCRIPT);
  }

  set script(text: string) {
    if (this.named !== null) this.scripts[this.named] = text;
  }

  /** What the script's file has; nothing where there is none. */
  get savedScript(): string {
    return this.named === null ? "" : (this.saved.scripts[this.named] ?? "");
  }

  /** Looks at the text once nobody types; called whenever it changes. */
  look(): () => void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), this.tests ? PAUSE : 0);
    return () => clearTimeout(this.timer);
  }

  async check(): Promise<void> {
    const { whole } = this;
    try {
      const tests = await call("rules.test", { texts: [this.sent()] });
      if (whole !== this.whole) return;
      this.tests = tests;
      this.tested = whole;
      this.checkFailed = null;
    } catch (thrown) {
      if (whole === this.whole) this.checkFailed = RpcError.of(thrown);
    }
  }

  async runBacktest(since: string | null): Promise<void> {
    this.cancel();
    const { whole } = this;
    [this.running, this.progress, this.refused] = [true, "", null];
    try {
      const stream = await start("rules.backtest", { rules: [this.sent()], since, examples: 20 });
      this.stream = stream;
      this.stop = follow(stream, {
        item: (item) => {
          if (isProgress(item)) this.progress = item.message;
          else if (isError(item)) say.tell("error", item.error, item.hint ?? null);
          else if (isData(item)) {
            this.backtest = wholeBacktest(item.data as Backtest);
            this.backtested = whole;
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
    const scripts = version === null || this.scriptChanged ? this.sentScripts() : {};
    [this.saving, this.refused] = [true, null];
    try {
      const saved = await call("rules.write", { scope, file, text: this.text, scripts, if_version: version });
      this.saved = { text: this.text, scripts: { ...this.saved.scripts, ...scripts } };
      say.tell("success", `${file} is saved and in use`);
      return saved.rule;
    } catch (thrown) {
      this.refused = RpcError.of(thrown);
      return null;
    } finally {
      this.saving = false;
    }
  }

  private sent(): { path: string; text: string; scripts: Record<string, string> } {
    return { path: this.draft.file, text: this.text, scripts: this.sentScripts() };
  }

  private sentScripts(): Record<string, string> {
    return this.named === null ? {} : { [this.named]: this.script };
  }
}
