//! Taking notes.

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
use crate::engine::Answer;
use crate::format::Trigger;
use crate::live::Whose;
use crate::load::Library;

/// How long notes wait to be written together.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// The most notes that wait. What comes while a database hangs is counted and not kept.
const MOST_WAITING: usize = 10_000;

/// How many executions are kept.
const KEPT: i64 = 100_000;

/// What is noted of a notification that [`Decided`](crate::live) did not pass on.
const OVER_QUOTA: &str = "the project's rules sent too many notifications at this event";

/// The longest text of an error or of decisions, in bytes.
const LONGEST: usize = 8 * 1024;

/// Where notes go.
pub(crate) struct Log {
    pub(super) db: Db,
    /// Removes secrets from lines before they are stored.
    redactor: Redactor,
    waiting: Mutex<Waiting>,
    /// Held while notes are written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    executions: Vec<Note>,
    lines: Vec<NewLine>,
    rules: HashMap<LivenessKey, Tally>,
    /// Notifications that were dropped after their rules had fired.
    undelivered: Vec<Dropped>,
    /// Executions that are not noted.
    dropped: u64,
    /// Sets whose rounds are counted.
    libraries: Vec<Arc<Library>>,
}

/// What is counted apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LivenessKey {
    user: String,
    /// Empty for none.
    project: String,
    rule: String,
    /// Whether it is about tool calls outside of a query.
    is_outside: bool,
}

impl LivenessKey {
    fn new(whose: &Whose, rule: &str, is_outside: bool) -> Self {
        let project = whose.project.as_ref();
        Self {
            user: whose.user.to_string(),
            project: project.map(ToString::to_string).unwrap_or_default(),
            rule: rule.to_owned(),
            is_outside,
        }
    }
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
        let is_outside = facts.outside_surface().is_some();
        for answer in answers {
            waiting.count(whose, is_outside, &answer, at);
            if answer.outcome.suppressed.is_some() {
                continue;
            }
            for mut line in lines::of_answer(whose, trigger, facts, &answer, at) {
                match waiting.lines.len() < MOST_WAITING {
                    true => {
                        line.redact(&self.redactor);
                        waiting.lines.push(line);
                    }
                    false => waiting.dropped += 1,
                }
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

    /// Takes note of a set of rules whose rounds are to be counted.
    pub(crate) fn remember(&self, library: &Arc<Library>) {
        if !library.is_counted.swap(true, Ordering::Relaxed) {
            self.waiting().libraries.push(Arc::clone(library));
        }
    }

    /// Notes that a notification was dropped after its rule had fired.
    pub(crate) fn note_dropped(&self, dropped: Dropped) {
        let mut waiting = self.waiting();
        match waiting.undelivered.len() < MOST_WAITING {
            true => waiting.undelivered.push(dropped),
            false => waiting.dropped += 1,
        }
    }

    /// Writes from time to time, for as long as the rules are in use.
    pub(crate) fn keep_writing(self: &Arc<Self>) {
        let log = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(WRITE_EVERY).await;
                let Some(log) = log.upgrade() else { return };
                log.flush().await;
            }
        });
    }

    /// Writes everything that was noted.
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
                "the database of rules is behind; executions were not noted"
            );
        }
        if taken.is_empty() {
            return;
        }
        let written = self.db.write(move |tx| taken.write(tx)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "what rules did could not be noted");
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

    fn count(&mut self, whose: &Whose, is_outside: bool, answer: &Answer, at: Timestamp) {
        let outcome = &answer.outcome;
        let key = LivenessKey::new(whose, &answer.rule.label, is_outside);
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

    /// Turns rounds of sets into evaluations of their rules. Sets that were replaced are counted
    /// once more, when nobody holds them any longer.
    fn take_rounds(&mut self) {
        for library in &self.libraries {
            for trigger in Trigger::ALL {
                for one in library.rules.at(trigger).take_rounds() {
                    let key = LivenessKey::new(&one.whose, &one.rule.label, one.is_outside);
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
            .retain(|library| Arc::strong_count(library) > 1);
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

/// JSON that was cut is none.
fn fitting(json: String) -> String {
    match json.len() <= LONGEST {
        true => json,
        false => "null".to_owned(),
    }
}
