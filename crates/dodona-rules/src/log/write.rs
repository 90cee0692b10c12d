//! Writing the log.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_plugin::store::{Db, DbError, Redactor, Tx};
use jiff::Timestamp;
use serde_json::json;

use super::dropped::Dropped;
use super::lines::{self, NewLine};
use super::liveness::{Counts, Tally};
use crate::context::Facts;
use crate::engine::EventOwner;
use crate::evaluate::RuleResult;
use crate::format::Trigger;
use crate::load::LoadedRules;

/// Interval at which buffered entries are written.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// Maximum number of buffered entries. Entries beyond it are counted and discarded.
const MOST_WAITING: usize = 10_000;

/// Number of executions kept in the log.
const KEPT: i64 = 100_000;

/// The log text of a notification that exceeded the quota of the project.
const OVER_QUOTA: &str = "the project's rules sent too many notifications at this event";

/// Maximum size of an error message or of decisions, in bytes.
const LONGEST: usize = 8 * 1024;

/// The log of executions and counts.
pub(crate) struct Log {
    pub(super) db: Db,
    /// Removes secrets from lines before they are stored.
    redactor: Redactor,
    waiting: Mutex<Waiting>,
    /// Held while entries are written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    executions: Vec<Note>,
    lines: Vec<NewLine>,
    rules: HashMap<LivenessKey, Tally>,
    /// Notifications that were dropped after their rules had fired.
    undelivered: Vec<Dropped>,
    /// Number of discarded executions.
    dropped: u64,
    /// Rule sets whose evaluations are counted.
    libraries: Vec<Arc<LoadedRules>>,
}

/// The key of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LivenessKey {
    user: String,
    /// Empty outside a project.
    project: String,
    rule: String,
    /// Whether it counts tool calls outside queries.
    is_outside: bool,
}

impl LivenessKey {
    fn new(owner: &EventOwner, rule: &str, is_outside: bool) -> Self {
        let project = owner.project.as_ref();
        Self {
            user: owner.user.to_string(),
            project: project.map(ToString::to_string).unwrap_or_default(),
            rule: rule.to_owned(),
            is_outside,
        }
    }
}

/// One row of the execution log.
struct Note {
    user: String,
    project: String,
    rule: String,
    trigger: Trigger,
    fired: bool,
    executed: bool,
    millis: f64,
    error: Option<String>,
    dropped: Option<&'static str>,
    at: Timestamp,
    context: Option<String>,
    query: Option<String>,
    turn: i64,
    decisions: String,
}

impl Log {
    pub(crate) fn new(db: Db, redactor: Redactor) -> Arc<Self> {
        Arc::new(Self {
            db,
            redactor,
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers the results of an event.
    pub(crate) fn note(
        &self,
        owner: &EventOwner,
        trigger: Trigger,
        facts: &Facts,
        answers: Vec<RuleResult>,
    ) {
        let at = Timestamp::now();
        let mut waiting = self.waiting();
        let is_outside = facts.outside_surface().is_some();
        for answer in answers {
            waiting.count(owner, is_outside, &answer, at);
            if answer.outcome.suppressed.is_some() {
                continue;
            }
            for mut line in lines::of_answer(owner, trigger, facts, &answer, at) {
                if waiting.lines.len() < MOST_WAITING {
                    line.redact(&self.redactor);
                    waiting.lines.push(line);
                } else {
                    waiting.dropped += 1
                }
            }
            if waiting.executions.len() < MOST_WAITING {
                let note = Note::of(owner, trigger, facts, &answer, at);
                waiting.executions.push(note);
            } else {
                waiting.dropped += 1
            }
        }
    }

    /// Adds a rule set whose evaluations are counted.
    pub(crate) fn remember(&self, loaded: &Arc<LoadedRules>) {
        if !loaded.is_counted.swap(true, Ordering::Relaxed) {
            self.waiting().libraries.push(Arc::clone(loaded));
        }
    }

    /// Buffers a dropped notification.
    pub(crate) fn note_dropped(&self, dropped: Dropped) {
        let mut waiting = self.waiting();
        if waiting.undelivered.len() < MOST_WAITING {
            waiting.undelivered.push(dropped)
        } else {
            waiting.dropped += 1
        }
    }

    /// Starts a task that writes the buffer. It ends when the log is dropped.
    pub(crate) fn spawn_writer(self: &Arc<Self>) {
        let log = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(WRITE_EVERY).await;
                let Some(log) = log.upgrade() else { return };
                log.flush().await;
            }
        });
    }

    /// Writes all buffered entries.
    pub(crate) async fn flush(&self) {
        let _writing = self.writing.lock().await;
        let taken = {
            let mut waiting = self.waiting();
            waiting.take_rounds();
            let libraries = std::mem::take(&mut waiting.libraries);
            std::mem::replace(
                &mut *waiting,
                Waiting {
                    libraries,
                    ..Waiting::default()
                },
            )
        };
        if taken.dropped > 0 {
            let dropped = taken.dropped;
            tracing::warn!(
                dropped,
                "the database of the rules plugin is too slow; executions were not logged"
            );
        }
        if taken.is_empty() {
            return;
        }
        let written = self.db.write(move |tx| taken.write(tx)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "failed to write the execution log of rules");
        }
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.executions.is_empty()
            && self.lines.is_empty()
            && self.rules.is_empty()
            && self.undelivered.is_empty()
    }

    fn count(&mut self, owner: &EventOwner, is_outside: bool, answer: &RuleResult, at: Timestamp) {
        let outcome = &answer.outcome;
        let key = LivenessKey::new(owner, &answer.rule.label, is_outside);
        self.rules.entry(key).or_default().add(Tally {
            counts: Counts {
                fired: u64::from(outcome.fired),
                failed: u64::from(outcome.error.is_some()),
                suppressed: u64::from(outcome.suppressed.is_some()),
                dropped: u64::from(outcome.dropped),
                ..Counts::default()
            },
            last_fired: outcome.fired.then_some(at),
            last_failed: outcome.error.as_ref().map(|_| at),
            last_error: outcome.error.as_ref().map(ToString::to_string),
            ..Tally::default()
        });
    }

    /// Converts the event counts of rule sets into counts per rule. A replaced set is counted a last time when
    /// no event uses it any more.
    fn take_rounds(&mut self) {
        for loaded in &self.libraries {
            for trigger in Trigger::ALL {
                for one in loaded.rules.at(trigger).take_rounds() {
                    let key = LivenessKey::new(&one.owner, &one.rule.label, one.is_outside);
                    self.rules.entry(key).or_default().add(Tally {
                        counts: Counts {
                            evaluated: one.times,
                            ..Counts::default()
                        },
                        last_evaluated: Some(one.last),
                        ..Tally::default()
                    });
                }
            }
        }
        self.libraries
            .retain(|loaded| Arc::strong_count(loaded) > 1);
    }

    fn write(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        for note in &self.executions {
            note.write(tx)?;
        }
        lines::write(tx, &self.lines)?;
        for (rule, counted) in &self.rules {
            write_liveness(tx, rule, counted)?;
        }
        for dropped in &self.undelivered {
            dropped.write(tx)?;
        }
        if !self.executions.is_empty() {
            let sql = "delete from rule_execution_log
                       where id <= (select max(id) from rule_execution_log) - ?1";
            tx.execute(sql, (KEPT,))?;
        }
        Ok(())
    }
}

impl Note {
    fn of(
        owner: &EventOwner,
        trigger: Trigger,
        facts: &Facts,
        answer: &RuleResult,
        at: Timestamp,
    ) -> Self {
        let outcome = &answer.outcome;
        Self {
            user: owner.user.to_string(),
            project: owner
                .project
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            rule: answer.rule.label.clone(),
            trigger,
            fired: outcome.fired,
            executed: !outcome.decisions.is_empty(),
            millis: answer.elapsed.as_secs_f64() * 1e3,
            error: outcome.error.as_ref().map(|error| short(error.to_string())),
            dropped: outcome.dropped.then_some(OVER_QUOTA),
            at,
            context: facts.context_id.clone(),
            query: facts.query_id.clone(),
            turn: facts.turn.number,
            decisions: fitting(json!(outcome.decisions).to_string()),
        }
    }

    fn write(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        let sql = "insert into rule_execution_log (user_id, project_id, rule_id, trigger,
                condition_result, action_executed, execution_time_ms, error_message, created_at,
                context_id, query_id, turn, decisions_json, dropped)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        tx.execute(sql, NoteParams(self))?;
        Ok(())
    }
}

/// The parameters of a row; there are more than a tuple has.
struct NoteParams<'n>(&'n Note);

impl dodona_plugin::store::Params for NoteParams<'_> {
    fn bind(&self, binder: &mut dodona_plugin::store::Binder<'_>) -> Result<(), DbError> {
        let note = self.0;
        binder.push(&note.user)?;
        binder.push(&note.project)?;
        binder.push(&note.rule)?;
        binder.push(note.trigger.as_str())?;
        binder.push(&note.fired)?;
        binder.push(&note.executed)?;
        binder.push(&note.millis)?;
        binder.push(&note.error)?;
        binder.push(&note.at.to_string())?;
        binder.push(&note.context)?;
        binder.push(&note.query)?;
        binder.push(&note.turn)?;
        binder.push(&note.decisions)?;
        binder.push(&note.dropped)
    }
}

fn write_liveness(tx: &Tx<'_>, key: &LivenessKey, counted: &Tally) -> Result<(), DbError> {
    let sql = "insert into rule_liveness (rule_id, evaluated, fired, failed, suppressed,
            last_evaluated, last_fired, last_failed, last_error, user_id, project_id, outside,
            dropped)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        on conflict (user_id, project_id, rule_id, outside) do update set
            evaluated = evaluated + excluded.evaluated, fired = fired + excluded.fired,
            failed = failed + excluded.failed, suppressed = suppressed + excluded.suppressed,
            dropped = dropped + excluded.dropped,
            last_evaluated = coalesce(excluded.last_evaluated, last_evaluated),
            last_fired = coalesce(excluded.last_fired, last_fired),
            last_failed = coalesce(excluded.last_failed, last_failed),
            last_error = coalesce(excluded.last_error, last_error)";
    tx.execute(sql, LivenessParams { key, counted })?;
    Ok(())
}

/// The parameters of a row; there are more than a tuple has.
struct LivenessParams<'l> {
    key: &'l LivenessKey,
    counted: &'l Tally,
}

impl dodona_plugin::store::Params for LivenessParams<'_> {
    fn bind(&self, binder: &mut dodona_plugin::store::Binder<'_>) -> Result<(), DbError> {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let Self { key, counted } = self;
        let counts = &counted.counts;
        binder.push(&key.rule)?;
        binder.push(&number(counts.evaluated))?;
        binder.push(&number(counts.fired))?;
        binder.push(&number(counts.failed))?;
        binder.push(&number(counts.suppressed))?;
        binder.push(&text(counted.last_evaluated))?;
        binder.push(&text(counted.last_fired))?;
        binder.push(&text(counted.last_failed))?;
        binder.push(&counted.last_error.clone().map(short))?;
        binder.push(&key.user)?;
        binder.push(&key.project)?;
        binder.push(&key.is_outside)?;
        binder.push(&number(counts.dropped))
    }
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// Truncated JSON would be invalid, so it is left out.
fn fitting(json: String) -> String {
    if json.len() <= LONGEST {
        json
    } else {
        "null".to_owned()
    }
}
