//! `rules.log_lines`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::Severity;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMethods;
use crate::identity::RuleKey;
use crate::log::{LineFilter, RuleLogLine};

#[derive(Deserialize, JsonSchema)]
pub(super) struct LogLinesParams {
    /// Only lines of this rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(max = 256))]
    rule: Option<String>,
    /// Only lines of this level and above.
    #[serde(default = "debug")]
    level: Severity,
    /// Only lines written at this time or later.
    since: Option<Timestamp>,
    /// Only lines after the one with this id, oldest first. Pass the last id you have read to continue without
    /// a gap.
    after: Option<i64>,
    /// Lines of all projects. Default: lines of the call's project, if it has one.
    #[serde(default)]
    all_projects: bool,
    /// Maximum number of lines. Default 100.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn debug() -> Severity {
    Severity::Debug
}

fn hundred() -> u32 {
    100
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogLines {
    /// The lines, oldest first.
    lines: Vec<RuleLogLine>,
}

pub(super) async fn list(
    methods: &RuleMethods,
    ctx: &CallCtx,
    p: LogLinesParams,
) -> Result<LogLines, CallError> {
    let key = p.rule.as_deref().map(str::parse::<RuleKey>).transpose();
    let key = key.map_err(|error| CallError::new(ErrorCode::InvalidParams, error.to_string()))?;
    let project = ctx.project.as_ref().filter(|_| !p.all_projects);
    let filter = LineFilter {
        user: ctx.principal.user.to_string(),
        project: project.map(|project| project.id.to_string()),
        rule: key.map(|key| key.to_string()),
        level: p.level,
        since: p.since,
        after: p.after,
        limit: p.limit.min(1_000),
    };
    let engine = &methods.engine;
    let lines = engine.log.lines(filter).await?;
    Ok(LogLines { lines })
}
