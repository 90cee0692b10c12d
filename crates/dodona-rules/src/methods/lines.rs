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
    /// Only lines of this rule: `plugin/id`, or `id` alone of a rule that belongs to no plugin.
    #[schemars(length(max = 256))]
    rule: Option<String>,
    /// Only lines of this level and above.
    #[serde(default = "debug")]
    level: Severity,
    /// Only lines written at this time or later.
    since: Option<Timestamp>,
    /// Only lines after the one with this id. They are returned from the oldest on, so that a reader
    /// that passes the last id it has seen misses none.
    after: Option<i64>,
    /// Lines of every project. Without it, those of the project of the call, if there is one.
    #[serde(default)]
    all_projects: bool,
    /// At most so many lines.
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
    /// The oldest first.
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
    let live = &methods.live;
    let lines = live.log.lines(filter).await?;
    Ok(LogLines { lines })
}
