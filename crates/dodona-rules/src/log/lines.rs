//! The lines that rules write with the action `log`.

use dodona_plugin::CallError;
use dodona_plugin::store::{DbError, Row, Tx};
use dodona_proto::{Effect, Severity};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write::Log;
use crate::context::Facts;
use crate::engine::EventOwner;
use crate::evaluate::{Decision, RuleResult};
use crate::format::Trigger;

/// How many lines are stored, of all users together. The oldest are deleted.
const MAX_LINES: i64 = 100_000;

/// The longest line, in bytes. What is longer is cut and marked with `…`.
const MAX_BYTES: usize = 8 * 1024;

/// A line that a rule wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleLogLine {
    /// Grows with time. Pass it as `after` to read later lines.
    pub id: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The level in the rule.
    pub level: Severity,
    /// The rule, as `plugin/id`.
    pub rule: String,
    /// The message after rendering.
    pub message: String,
    /// The trigger at which the rule fired.
    pub trigger: String,
    /// The project; empty outside of one.
    pub project: String,
    /// The conversation, where there is one.
    pub context_id: Option<String>,
    /// The query, where there is one.
    pub query_id: Option<String>,
}

/// Which lines to read.
#[derive(Debug, Clone, Default)]
pub struct LineFilter {
    pub user: String,
    /// Of this project; of all without.
    pub project: Option<String>,
    pub rule: Option<String>,
    /// Of this level and above.
    pub level: Severity,
    /// Written at this time or later.
    pub since: Option<Timestamp>,
    /// Written after the line with this id, the oldest first. Without it, the newest lines.
    pub after: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// A line that waits to be stored.
pub(super) struct NewLine {
    user: String,
    project: String,
    rule: String,
    level: Severity,
    message: String,
    trigger: Trigger,
    at: Timestamp,
    context: Option<String>,
    query: Option<String>,
}

/// The lines of an answer.
pub(super) fn of_answer<'a>(
    owner: &'a EventOwner,
    trigger: Trigger,
    facts: &'a Facts,
    answer: &'a RuleResult,
    at: Timestamp,
) -> impl Iterator<Item = NewLine> + 'a {
    let logged = answer.outcome.decisions.iter().filter_map(|one| match one {
        Decision::Effect(Effect::Log { level, message }) => Some((*level, message)),
        _ => None,
    });
    logged.map(move |(level, message)| NewLine {
        user: owner.user.to_string(),
        project: (owner.project.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        rule: answer.rule.label.clone(),
        level,
        message: cut(message),
        trigger,
        at,
        context: facts.context_id.clone(),
        query: facts.query_id.clone(),
    })
}

fn cut(message: &str) -> String {
    if message.len() <= MAX_BYTES {
        message.to_owned()
    } else {
        format!("{}…", &message[..message.floor_char_boundary(MAX_BYTES)])
    }
}

impl NewLine {
    /// Removes secrets from the text.
    pub(super) fn redact(&mut self, redactor: &dodona_plugin::store::Redactor) {
        redactor.text(&mut self.message);
    }

    fn write(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        tx.execute(
            "insert into rule_log_lines (user_id, project_id, rule_id, level, message, trigger,
                 created_at, context_id, query_id)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                self.user.as_str(),
                self.project.as_str(),
                self.rule.as_str(),
                rank(self.level),
                self.message.as_str(),
                self.trigger.as_str(),
                stamp(self.at),
                self.context.as_deref(),
                self.query.as_deref(),
            ),
        )?;
        Ok(())
    }
}

/// Stores lines and deletes the oldest beyond the bound.
pub(super) fn write(tx: &Tx<'_>, lines: &[NewLine]) -> Result<(), DbError> {
    for line in lines {
        line.write(tx)?;
    }
    if !lines.is_empty() {
        let sql = "delete from rule_log_lines
            where id <= (select max(id) from rule_log_lines) - ?1";
        tx.execute(sql, (MAX_LINES,))?;
    }
    Ok(())
}

/// Levels in order, the least important first.
const LEVELS: [Severity; 4] = [
    Severity::Debug,
    Severity::Info,
    Severity::Warning,
    Severity::Error,
];

fn rank(level: Severity) -> i64 {
    let place = LEVELS.iter().position(|one| *one == level);
    place
        .and_then(|place| i64::try_from(place).ok())
        .unwrap_or(1)
}

/// A time with a fixed number of digits, so that texts sort as times do.
fn stamp(at: Timestamp) -> String {
    format!("{at:.6}")
}

impl Log {
    /// Lines, the oldest first.
    pub(crate) async fn lines(&self, filter: LineFilter) -> Result<Vec<RuleLogLine>, CallError> {
        self.flush().await;
        let read = move |tx: &Tx<'_>| {
            let order = match filter.after {
                Some(_) => "asc",
                None => "desc",
            };
            let sql = format!(
                "select id, created_at, level, rule_id, message, trigger, project_id, context_id,
                     query_id
                 from rule_log_lines
                 where user_id = ?1 and (?2 is null or project_id = ?2)
                     and (?3 is null or rule_id = ?3) and level >= ?4
                     and (?5 is null or created_at >= ?5) and id > ?6
                 order by id {order} limit ?7"
            );
            let params = (
                filter.user.as_str(),
                filter.project.as_deref(),
                filter.rule.as_deref(),
                rank(filter.level),
                filter.since.map(stamp),
                filter.after.unwrap_or(0),
                i64::from(filter.limit),
            );
            let mut lines = tx.query(&sql, params, read_line)?;
            if filter.after.is_none() {
                lines.reverse();
            }
            Ok(lines)
        };
        Ok(self.db.read(read).await?)
    }
}

fn read_line(row: &Row<'_>) -> Result<RuleLogLine, DbError> {
    let rank: i64 = row.get(2)?;
    let level = usize::try_from(rank).ok().and_then(|rank| LEVELS.get(rank));
    Ok(RuleLogLine {
        id: row.get(0)?,
        at: row.text(1)?.parse().unwrap_or_default(),
        level: level.copied().unwrap_or_default(),
        rule: row.get(3)?,
        message: row.get(4)?,
        trigger: row.get(5)?,
        project: row.get(6)?,
        context_id: row.get(7)?,
        query_id: row.get(8)?,
    })
}
