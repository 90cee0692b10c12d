//! Reading the log.

use std::collections::BTreeMap;

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_plugin::{CallCtx, CallError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::liveness::{Counts, Liveness, Tally};
use super::write::Log;
use crate::evaluate::PastFiring;

/// How many firings of a rule are read after a restart, for cooldowns.
const RECALLED: i64 = 500;

/// One execution: a rule that fired or failed, or whose notification was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Id that increases with time.
    pub id: i64,
    /// The rule, as `plugin/id`.
    pub rule: String,
    /// The trigger of the event.
    pub trigger: String,
    /// Whether the condition was true.
    pub fired: bool,
    /// Whether the rule fired.
    pub executed: bool,
    /// Duration of the evaluation.
    pub execution_time_ms: f64,
    /// The error of a failed evaluation.
    pub error: Option<String>,
    /// Why a notification of the rule was dropped. It is not among the decisions, and a rule without
    /// other decisions has not fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// Time of the execution.
    pub at: Timestamp,
    /// The user of the event.
    pub user: String,
    /// The project; empty outside a project.
    pub project: String,
    /// Id of the conversation, if any.
    pub context_id: Option<String>,
    /// Id of the query, if any.
    pub query_id: Option<String>,
    /// Turn number in the conversation; 0 outside a conversation.
    pub turn: i64,
    /// The decisions; null if they were too large to store.
    pub decisions: Value,
}

/// A filter for executions.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    pub user: String,
    /// Of this rule only.
    pub rule: Option<String>,
    /// Only those that failed.
    pub failed: bool,
    /// Maximum number, newest first.
    pub limit: u32,
}

impl Log {
    /// Lists executions, newest first.
    pub(crate) async fn executions(&self, filter: LogFilter) -> Result<Vec<Execution>, CallError> {
        self.flush().await;
        let read = move |tx: &Tx<'_>| {
            let sql = "select id, rule_id, trigger, condition_result, action_executed,
                    execution_time_ms, error_message, created_at, user_id, project_id, context_id,
                    query_id, turn, decisions_json, dropped
                from rule_execution_log
                where user_id = ?1 and (?2 is null or rule_id = ?2)
                    and (?3 = 0 or error_message is not null)
                order by id desc limit ?4";
            let params = (
                &filter.user,
                &filter.rule,
                filter.failed,
                i64::from(filter.limit),
            );
            tx.query(sql, params, execution)
        };
        Ok(self.db.read(read).await?)
    }

    /// The last firings of a rule, newest first.
    pub(crate) async fn last_firings(&self, rule: &str) -> Result<Vec<PastFiring>, CallError> {
        let rule = rule.to_owned();
        let read = move |tx: &Tx<'_>| {
            let sql = "select user_id, project_id, context_id, query_id, turn, created_at
                from rule_execution_log where rule_id = ?1 and condition_result = 1
                order by id desc limit ?2";
            tx.query(sql, (&rule, RECALLED), |row| {
                Ok(PastFiring {
                    user: row.get(0)?,
                    project: row.get(1)?,
                    context: row.get(2)?,
                    query: row.get(3)?,
                    turn: row.get(4)?,
                    at: time(row, 5)?.unwrap_or_default(),
                })
            })
        };
        Ok(self.db.read(read).await?)
    }

    /// The counts of each rule for a user in a project, or in all projects, by label.
    pub(crate) async fn liveness(
        &self,
        ctx: &CallCtx,
    ) -> Result<BTreeMap<String, Liveness>, CallError> {
        self.flush().await;
        let user = ctx.principal.user.to_string();
        let project = ctx.project.as_ref();
        let project = project.map(|project| project.id.to_string());
        let read = move |tx: &Tx<'_>| {
            // The newest failure comes last, so that its message is kept.
            let sql = "select rule_id, outside, evaluated, fired, failed, suppressed, dropped,
                    last_evaluated, last_fired, last_failed, last_error from rule_liveness
                where user_id = ?1 and (?2 is null or project_id = ?2)
                order by last_failed";
            tx.query(sql, (user, project), |row| {
                Ok((row.get::<String>(0)?, row.get::<bool>(1)?, tally(row)?))
            })
        };
        let mut all: BTreeMap<String, Liveness> = BTreeMap::new();
        for (rule, is_outside, tally) in self.db.read(read).await? {
            all.entry(rule).or_default().add(tally, is_outside);
        }
        Ok(all)
    }

    /// The newest executions of a user's rule of which a notification was dropped.
    pub(crate) async fn dropped_of(
        &self,
        user: &str,
        rule: &str,
    ) -> Result<Vec<DroppedExecution>, CallError> {
        self.flush().await;
        let (user, rule) = (user.to_owned(), rule.to_owned());
        let read = move |tx: &Tx<'_>| {
            let sql = "select query_id, turn, dropped from rule_execution_log
                where rule_id = ?1 and user_id = ?2 and dropped is not null
                order by id desc limit ?3";
            tx.query(sql, (&rule, &user, RECALLED), |row| {
                Ok(DroppedExecution {
                    query: row.get(0)?,
                    turn: row.get(1)?,
                    reason: row.get(2)?,
                })
            })
        };
        Ok(self.db.read(read).await?)
    }
}

/// An execution of which a notification was dropped.
#[derive(Debug, Clone)]
pub(crate) struct DroppedExecution {
    pub(crate) query: Option<String>,
    pub(crate) turn: i64,
    pub(crate) reason: String,
}

fn execution(row: &Row<'_>) -> Result<Execution, DbError> {
    let decisions = row.get::<String>(13)?;
    Ok(Execution {
        id: row.get(0)?,
        rule: row.get(1)?,
        trigger: row.get(2)?,
        fired: row.get(3)?,
        executed: row.get(4)?,
        execution_time_ms: row.get(5)?,
        error: row.get(6)?,
        at: time(row, 7)?.unwrap_or_default(),
        user: row.get(8)?,
        project: row.get(9)?,
        context_id: row.get(10)?,
        query_id: row.get(11)?,
        turn: row.get(12)?,
        decisions: serde_json::from_str(&decisions).unwrap_or_default(),
        dropped: row.get(14)?,
    })
}

fn tally(row: &Row<'_>) -> Result<Tally, DbError> {
    Ok(Tally {
        counts: Counts {
            evaluated: count(row, 2)?,
            fired: count(row, 3)?,
            failed: count(row, 4)?,
            suppressed: count(row, 5)?,
            dropped: count(row, 6)?,
        },
        last_evaluated: time(row, 7)?,
        last_fired: time(row, 8)?,
        last_failed: time(row, 9)?,
        last_error: row.get(10)?,
    })
}

fn count(row: &Row<'_>, index: usize) -> Result<u64, DbError> {
    Ok(row.get::<i64>(index)?.unsigned_abs())
}

fn time(row: &Row<'_>, index: usize) -> Result<Option<Timestamp>, DbError> {
    let text: Option<String> = row.get(index)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
