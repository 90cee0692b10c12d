//! `rules.show`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::list::RuleSummary;
use super::{RuleMethods, find};

/// A rule with its content and status.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleShown {
    /// Status and counts of the rule.
    #[serde(flatten)]
    summary: RuleSummary,
    /// The content of its file: condition, actions, limits, tests.
    definition: Value,
    /// Line number of the condition in the file.
    condition_line: usize,
}

pub(super) async fn show(
    methods: &RuleMethods,
    ctx: &CallCtx,
    name: &str,
) -> Result<RuleShown, CallError> {
    let engine = &methods.engine;
    let rules = methods.rules(ctx).await;
    let rule = find(&rules, name)?;
    let off = engine.host.disabled(&ctx.principal.user);
    let mut alive = engine.log.liveness(ctx).await?;
    let liveness = alive.remove(&rule.label).unwrap_or_default();
    let definition = serde_json::to_value(&rule.rule).map_err(|error| {
        CallError::new(ErrorCode::Internal, "failed to show the rule").log(error)
    })?;
    Ok(RuleShown {
        summary: RuleSummary::new(&rules.loaded, &rule, off.contains(&rule.label), liveness),
        definition,
        condition_line: rule.rule.spots.condition.line,
    })
}
