//! Reads the journal page by page, together with the messages that rules read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, ReadPosition, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::QuerySnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::RuleAnalysis;
use crate::load::RuleSet;
use crate::reads::Reads;
use crate::replay::Messages;

/// Number of pages read ahead: one is read while another is evaluated.
pub(super) const AHEAD: usize = 2;

/// Number of events between two progress reports.
const TELL_AFTER: u64 = 50_000;

/// The method that returns the messages of a query. Without the agent plugin they are unavailable.
const MESSAGES: &str = "agent.messages";

/// Events, oldest first, with the messages of their queries.
pub(super) struct Page {
    pub(super) events: Vec<RecordedEvent>,
    pub(super) messages: Arc<Messages>,
}

/// A selection of events in the journal.
pub(super) struct Feed<'f> {
    pub(super) analysis: &'f RuleAnalysis,
    pub(super) ctx: &'f CallCtx,
    pub(super) filter: EventFilter,
    /// Position of the last event to read.
    pub(super) until: Option<u64>,
    /// Whether a rule reads messages.
    pub(super) with_messages: bool,
}

/// Whether one of the rules reads the messages of a conversation.
pub(super) fn reads_messages(rules: &RuleSet) -> bool {
    let mut rules = rules.rules().iter();
    rules.any(|rule| rule.reads.any(Reads::MESSAGES))
}

impl Feed<'_> {
    /// Sends the pages. Holds only a few pages in memory.
    pub(super) async fn run(self, pages: mpsc::Sender<Page>) -> Result<(), CallError> {
        let mut place = ReadPosition::Beginning;
        let (mut read, mut told) = (0, 0);
        let until = self.until.unwrap_or(u64::MAX);
        loop {
            let history = &self.analysis.history;
            let mut events = history.page(self.filter.clone(), place).await?;
            events.retain(|event| event.position <= until);
            let Some(last) = events.last() else {
                return Ok(());
            };
            place = ReadPosition::After(last.position);
            read += events.len() as u64;
            if read >= told + TELL_AFTER {
                told = read;
                let progress = self.ctx.progress(format!("{read} events"), None);
                progress.await?;
            }
            let messages = if self.with_messages {
                self.messages(&events).await
            } else {
                Messages::default()
            };
            let page = Page {
                events,
                messages: Arc::new(messages),
            };
            if pages.send(page).await.is_err() {
                // The receiver has ended and reports the reason itself.
                return Ok(());
            }
        }
    }

    /// The messages of the queries of a page. Messages that cannot be read are left out; rules that need them
    /// are reported as not evaluated.
    async fn messages(&self, events: &[RecordedEvent]) -> Messages {
        let mut messages = Messages::default();
        let known = self.ctx.methods();
        if !known.iter().any(|method| method.name.as_str() == MESSAGES) {
            return messages;
        }
        let mut queries: BTreeMap<String, BTreeSet<Seen>> = BTreeMap::new();
        for snapshot in events.iter().filter_map(snapshot_of) {
            let turns = queries.entry(snapshot.query_id.clone()).or_default();
            turns.insert(Seen::of(&snapshot));
        }
        for (query, turns) in queries {
            let params = json!({ "query_id": query, "turns": turns });
            match self.ctx.call::<Sent>(MESSAGES, params).await {
                Ok(sent) => sent.turns.into_iter().for_each(|turn| {
                    messages.add(&query, turn.turn, turn.message_count, turn.messages);
                }),
                Err(error) => {
                    tracing::debug!(
                        query,
                        error = error.message,
                        "the messages of the query are not available"
                    );
                }
            }
        }
        messages
    }
}

/// The turn of a query snapshot.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Seen {
    turn: u32,
    message_count: u64,
    from: u64,
}

impl Seen {
    fn of(snapshot: &QuerySnapshot) -> Self {
        Self {
            turn: snapshot.turn.iteration_count,
            message_count: snapshot.history.message_count,
            from: snapshot.exchanges.from,
        }
    }
}

#[derive(Deserialize)]
struct Sent {
    turns: Vec<SentTurn>,
}

#[derive(Deserialize)]
struct SentTurn {
    turn: u32,
    message_count: u64,
    messages: Vec<Value>,
}

/// The query snapshot of an event.
pub(super) fn snapshot_of(event: &RecordedEvent) -> Option<QuerySnapshot> {
    #[derive(Deserialize)]
    struct OfQuery {
        snapshot: Option<QuerySnapshot>,
    }
    let about: OfQuery = serde_json::from_str(&event.payload).ok()?;
    about.snapshot
}
