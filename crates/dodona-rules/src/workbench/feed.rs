//! The journal, page by page, with what rules read that is kept elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, Place, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::QuerySnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Workbench;
use crate::load::RuleSet;
use crate::reads::Reads;
use crate::replay::Messages;

/// How many pages wait for the rules: one is read while another is being worked on.
pub(super) const AHEAD: usize = 2;

/// After how many events it is told how far things are.
const TELL_AFTER: u64 = 50_000;

/// What tells the messages of a query. Without that plugin nobody knows them.
const MESSAGES: &str = "agent.messages";

/// Events, the oldest first, and the messages that they are about.
pub(super) struct Page {
    pub(super) events: Vec<RecordedEvent>,
    pub(super) messages: Arc<Messages>,
}

/// What is read of the journal.
pub(super) struct Feed<'f> {
    pub(super) bench: &'f Workbench,
    pub(super) ctx: &'f CallCtx,
    pub(super) filter: EventFilter,
    /// No event after this position.
    pub(super) until: Option<u64>,
    /// Whether somebody reads messages.
    pub(super) with_messages: bool,
}

/// Whether one of the rules reads the messages of a conversation.
pub(super) fn reads_messages(rules: &RuleSet) -> bool {
    let mut rules = rules.rules().iter();
    rules.any(|rule| rule.reads.any(Reads::MESSAGES))
}

impl Feed<'_> {
    /// Reads page by page. Memory holds a few pages, whatever there is.
    pub(super) async fn run(self, pages: mpsc::Sender<Page>) -> Result<(), CallError> {
        let mut place = Place::Beginning;
        let (mut read, mut told) = (0, 0);
        let until = self.until.unwrap_or(u64::MAX);
        loop {
            let history = &self.bench.history;
            let mut events = history.page(self.filter.clone(), place).await?;
            events.retain(|event| event.position <= until);
            let Some(last) = events.last() else {
                return Ok(());
            };
            place = Place::After(last.position);
            read += events.len() as u64;
            if read >= told + TELL_AFTER {
                told = read;
                let progress = self.ctx.progress(format!("{read} events"), None);
                progress.await?;
            }
            let messages = match self.with_messages {
                true => self.messages(&events).await,
                false => Messages::default(),
            };
            let page = Page {
                events,
                messages: Arc::new(messages),
            };
            if pages.send(page).await.is_err() {
                // Whoever worked on them has ended, and tells why.
                return Ok(());
            }
        }
    }

    /// The messages of the queries that a page is about. Those that cannot be had are missing, which
    /// rules that read them are told of.
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
                    tracing::debug!(query, error = error.message, "its messages are not known");
                }
            }
        }
        messages
    }
}

/// What a snapshot says about its turn.
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

/// How the query stood that an event is about.
pub(super) fn snapshot_of(event: &RecordedEvent) -> Option<QuerySnapshot> {
    #[derive(Deserialize)]
    struct OfQuery {
        snapshot: Option<QuerySnapshot>,
    }
    let about: OfQuery = serde_json::from_str(&event.payload).ok()?;
    about.snapshot
}
