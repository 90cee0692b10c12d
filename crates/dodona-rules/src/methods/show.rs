//! `rules.show`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::list::RuleSummary;
use super::{RuleMethods, find};

/// A rule.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleShown {
    /// How it stands.
    #[serde(flatten)]
    summary: RuleSummary,
    /// As its file has it: condition, actions, limits, tests.
    definition: Value,
    /// The line of the file on which its condition stands.
    condition_line: usize,
}

pub(super) async fn show(
    methods: &RuleMethods,
    ctx: &CallCtx,
    name: &str,
) -> Result<RuleShown, CallError> {
    let live = &methods.live;
    let rules = methods.rules(ctx).await;
    let rule = find(&rules, name)?;
    let off = live.host.disabled(&ctx.principal.user);
    let mut alive = live.log.liveness(ctx).await?;
    let liveness = alive.remove(&rule.label).unwrap_or_default();
    let definition = serde_json::to_value(&rule.rule).map_err(|error| {
        CallError::new(ErrorCode::Internal, "the rule cannot be shown").log(error)
    })?;
    Ok(RuleShown {
        summary: RuleSummary::new(&rules.library, &rule, off.contains(&rule.label), liveness),
        definition,
        condition_line: rule.rule.spots.condition.line,
    })
}
