//! Notifications that were dropped after their rules had fired.
//!
//! A notification waits in the inbox of the conversation after its rule fired. If too many wait, it is
//! dropped, and the logged execution is corrected: a notification that the model never reads does not count.

use dodona_plugin::DroppedNotification;
use dodona_plugin::store::{DbError, Tx};
use serde_json::{Value, json};

/// How many of the rule's newest executions are searched for the notification.
const NEWEST: i64 = 100;

/// A notification that was not delivered.
pub(crate) struct Dropped {
    user: String,
    project: String,
    rule: String,
    context: Option<String>,
    message: String,
    reason: String,
}

impl From<DroppedNotification> for Dropped {
    fn from(dropped: DroppedNotification) -> Self {
        let project = dropped.project.as_ref();
        Self {
            user: dropped.user.to_string(),
            project: project.map(ToString::to_string).unwrap_or_default(),
            rule: dropped.rule,
            context: dropped.context_id,
            message: dropped.message,
            reason: dropped.reason,
        }
    }
}

impl Dropped {
    /// Corrects the execution and the counts. If the execution is no longer in the log, only the counts.
    pub(super) fn write(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        let sql = "select id, decisions_json from rule_execution_log
            where rule_id = ?1 and user_id = ?2 and project_id = ?3 and context_id is ?4
                and condition_result = 1
            order by id desc limit ?5";
        let params = (&self.rule, &self.user, &self.project, &self.context, NEWEST);
        let rows = tx.query(sql, params, |row| {
            Ok((row.get::<i64>(0)?, row.get::<String>(1)?))
        })?;
        let corrected = rows.iter().find_map(|(id, decisions)| {
            let left = self.without(decisions)?;
            Some((*id, left))
        });
        let mut fired_less = 0;
        if let Some((id, left)) = corrected {
            let fired = left.as_array().is_some_and(|left| !left.is_empty());
            fired_less = i64::from(!fired);
            let sql = "update rule_execution_log set dropped = ?2, condition_result = ?3,
                action_executed = ?3, decisions_json = ?4 where id = ?1";
            tx.execute(sql, (id, &self.reason, fired, left.to_string()))?;
        }
        self.count(tx, fired_less)
    }

    /// The decisions without the notification; `None` if it is not among them.
    fn without(&self, decisions: &str) -> Option<Value> {
        let mut decisions: Value = serde_json::from_str(decisions).ok()?;
        let Some(all) = decisions.as_array_mut() else {
            // The decisions were too large for the log, so this may be the execution.
            return Some(json!([]));
        };
        // The message names the rule and its author before the text of the decision.
        let is_this = |decision: &Value| {
            decision["type"] == "notify_self"
                && decision["message"]
                    .as_str()
                    .is_some_and(|text| self.message.ends_with(text))
        };
        let at = all.iter().position(is_this)?;
        all.remove(at);
        Some(decisions)
    }

    fn count(&self, tx: &Tx<'_>, fired_less: i64) -> Result<(), DbError> {
        let sql = "update rule_liveness set dropped = dropped + 1, fired = max(fired - ?4, 0),
                last_fired = (select max(created_at) from rule_execution_log
                    where rule_id = ?3 and user_id = ?1 and project_id = ?2
                        and condition_result = 1)
            where user_id = ?1 and project_id = ?2 and rule_id = ?3 and outside = ?5";
        let is_outside = self.context.is_none();
        let params = (
            &self.user,
            &self.project,
            &self.rule,
            fired_less,
            is_outside,
        );
        tx.execute(sql, params)?;
        Ok(())
    }
}
