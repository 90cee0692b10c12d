//! `rules.log`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMethods;
use crate::identity::RuleKey;
use crate::log::{Execution, LogFilter};

#[derive(Deserialize, JsonSchema)]
pub(super) struct LogParams {
    /// Only executions of this rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(max = 256))]
    rule: Option<String>,
    /// List only failed executions.
    #[serde(default)]
    failed: bool,
    /// Maximum number of executions. Default 50.
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn some() -> u32 {
    50
}

/// A list of executions of rules.
#[derive(Serialize, JsonSchema)]
pub(super) struct Executions {
    /// The executions, newest first.
    executions: Vec<Execution>,
}

pub(super) async fn list(
    methods: &RuleMethods,
    ctx: &CallCtx,
    p: LogParams,
) -> Result<Executions, CallError> {
    let key = p.rule.as_deref().map(str::parse::<RuleKey>).transpose();
    let key = key.map_err(|error| CallError::new(ErrorCode::InvalidParams, error.to_string()))?;
    let filter = LogFilter {
        user: ctx.principal.user.to_string(),
        rule: key.map(|key| key.to_string()),
        failed: p.failed,
        limit: p.limit.min(1_000),
    };
    let engine = &methods.engine;
    let executions = engine.log.executions(filter).await?;
    Ok(Executions { executions })
}
