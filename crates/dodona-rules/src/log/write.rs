//! Taking notes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_plugin::store::{Db, DbError, Tx};
use jiff::Timestamp;
use serde_json::json;

use super::liveness::Liveness;
use crate::context::Facts;
use crate::engine::Answer;
use crate::format::Trigger;
use crate::live::{Rulebook, Whose};
use crate::load::Library;

/// How long notes wait to be written together.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// The most notes that wait. What comes while a database hangs is counted and not kept.
const MOST_WAITING: usize = 10_000;

/// How many executions are kept.
const KEPT: i64 = 100_000;

/// The longest text of an error or of decisions, in bytes.
const LONGEST: usize = 8 * 1024;

/// Where notes go.
pub(crate) struct Log {
    pub(super) db: Db,
    waiting: Mutex<Waiting>,
    /// Held while notes are written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    executions: Vec<Note>,
    rules: HashMap<String, Liveness>,
    dropped: u64,
    /// Sets whose rounds are counted.
    libraries: Vec<Arc<Library>>,
}

/// One row.
struct Note {
    user: String,
    project: String,
    rule: String,
    trigger: Trigger,
    fired: bool,
    executed: bool,
    millis: f64,
    error: Option<String>,
    at: Timestamp,
    context: Option<String>,
    query: Option<String>,
    turn: i64,
    decisions: String,
}

impl Log {
    pub(crate) fn new(db: Db) -> Arc<Self> {
        Arc::new(Self {
            db,
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what rules said about an event.
    pub(crate) fn note(
        &self,
        whose: &Whose,
        trigger: Trigger,
        facts: &Facts,
        answers: Vec<Answer>,
    ) {
        let at = Timestamp::now();
        let mut waiting = self.waiting();
        for answer in answers {
            waiting.count(&answer, at);
            if answer.outcome.suppressed.is_some() {
                continue;
            }
            match waiting.executions.len() < MOST_WAITING {
                true => {
                    let note = Note::of(whose, trigger, facts, &answer, at);
                    waiting.executions.push(note);
                }
                false => waiting.dropped += 1,
            }
        }
    }

    /// Writes from time to time, for as long as the rules are in use.
    pub(crate) fn keep_writing(self: &Arc<Self>, book: &Arc<Rulebook>) {
        let (log, book) = (Arc::downgrade(self), Arc::downgrade(book));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(WRITE_EVERY).await;
                let (Some(log), Some(book)) = (log.upgrade(), book.upgrade()) else {
                    return;
                };
                log.flush(&book).await;
            }
        });
    }

    /// Writes everything that was noted.
    pub(crate) async fn flush(&self, book: &Rulebook) {
        let _writing = self.writing.lock().await;
        let taken = {
            let mut waiting = self.waiting();
            waiting.take_rounds(book);
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
                "the database of rules is behind; executions were not noted"
            );
        }
        if taken.executions.is_empty() && taken.rules.is_empty() {
            return;
        }
        let written = self.db.write(move |tx| taken.write(tx)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "what rules did could not be noted");
        }
    }
}

impl Waiting {
    fn count(&mut self, answer: &Answer, at: Timestamp) {
        let outcome = &answer.outcome;
        let rule = self.rules.entry(answer.rule.label.clone()).or_default();
        rule.add(Liveness {
            fired: u64::from(outcome.fired),
            failed: u64::from(outcome.error.is_some()),
            suppressed: u64::from(outcome.suppressed.is_some()),
            last_fired: outcome.fired.then_some(at),
            last_failed: outcome.error.as_ref().map(|_| at),
            last_error: outcome.error.as_ref().map(ToString::to_string),
            ..Liveness::default()
        });
    }

    /// Turns rounds of sets into evaluations of their rules. Sets that were replaced are counted
    /// once more, when nobody holds them any longer.
    fn take_rounds(&mut self, book: &Rulebook) {
        for library in book.libraries() {
            if !self
                .libraries
                .iter()
                .any(|known| Arc::ptr_eq(known, &library))
            {
                self.libraries.push(library);
            }
        }
        for library in &self.libraries {
            for trigger in Trigger::ALL {
                for (rule, evaluated, last) in library.rules.at(trigger).take_rounds() {
                    let counted = self.rules.entry(rule.label.clone()).or_default();
                    counted.add(Liveness {
                        evaluated,
                        last_evaluated: Some(last),
                        ..Liveness::default()
                    });
                }
            }
        }
        self.libraries
            .retain(|library| Arc::strong_count(library) > 1);
    }

    fn write(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        for note in &self.executions {
            note.write(tx)?;
        }
        for (rule, counted) in &self.rules {
            write_liveness(tx, rule, counted)?;
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
    fn of(whose: &Whose, trigger: Trigger, facts: &Facts, answer: &Answer, at: Timestamp) -> Self {
        let outcome = &answer.outcome;
        Self {
            user: whose.user.to_string(),
            project: whose
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
                context_id, query_id, turn, decisions_json)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        let params = Row13(self);
        tx.execute(sql, params)?;
        Ok(())
    }
}

/// The parameters of a row; there are more than a tuple has.
struct Row13<'n>(&'n Note);

impl dodona_plugin::store::Params for Row13<'_> {
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
        binder.push(&note.decisions)
    }
}

fn write_liveness(tx: &Tx<'_>, rule: &str, counted: &Liveness) -> Result<(), DbError> {
    let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let sql = "insert into rule_liveness (rule_id, evaluated, fired, failed, suppressed,
            last_evaluated, last_fired, last_failed, last_error)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        on conflict (rule_id) do update set
            evaluated = evaluated + excluded.evaluated, fired = fired + excluded.fired,
            failed = failed + excluded.failed, suppressed = suppressed + excluded.suppressed,
            last_evaluated = coalesce(excluded.last_evaluated, last_evaluated),
            last_fired = coalesce(excluded.last_fired, last_fired),
            last_failed = coalesce(excluded.last_failed, last_failed),
            last_error = coalesce(excluded.last_error, last_error)";
    tx.execute(
        sql,
        (
            rule,
            number(counted.evaluated),
            number(counted.fired),
            number(counted.failed),
            number(counted.suppressed),
            text(counted.last_evaluated),
            text(counted.last_fired),
            text(counted.last_failed),
            counted.last_error.clone().map(short),
        ),
    )?;
    Ok(())
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// JSON that was cut is none.
fn fitting(json: String) -> String {
    match json.len() <= LONGEST {
        true => json,
        false => "null".to_owned(),
    }
}
