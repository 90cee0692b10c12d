/** The wire leaves lists out that are empty; the page wants them all. */
import type { Backtest, EventExplained, RuleDiff, RuleReport } from "$lib/rpc/types";

const report = (sent: RuleReport): RuleReport => ({
  ...sent,
  reasons: sent.reasons ?? [],
  messages: sent.messages ?? [],
  examples: sent.examples ?? [],
});

const diff = (sent: RuleDiff): RuleDiff => ({ ...sent, examples: sent.examples ?? [] });

export const wholeBacktest = (sent: Backtest): Backtest => ({
  ...sent,
  problems: sent.problems ?? [],
  rules: (sent.rules ?? []).map(report),
  diff: sent.diff?.map(diff) ?? null,
});

export const wholeEvent = (sent: EventExplained): EventExplained => ({ ...sent, decisions: sent.decisions ?? [] });
