//! Messages sent to models, for rules that read them.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_proto::QuerySnapshot;
use serde_json::Value;

/// The messages of requests. Events do not contain them, because conversations store them once. The caller of a
/// replay adds those that the next events need.
#[derive(Debug, Default)]
pub struct Messages {
    /// By query, then by turn and number of messages.
    queries: HashMap<String, HashMap<(u32, u64), Arc<Value>>>,
}

impl Messages {
    /// Adds the messages of a turn: their number, and the last of them.
    pub fn add(&mut self, query: &str, turn: u32, count: u64, last: Vec<Value>) {
        let turns = self.queries.entry(query.to_owned()).or_default();
        turns.insert((turn, count), Arc::new(Value::Array(last)));
    }

    /// The messages at the time of a snapshot, if they were added.
    pub(super) fn then(&self, snapshot: &QuerySnapshot) -> Option<Arc<Value>> {
        let seen = (
            snapshot.turn.iteration_count,
            snapshot.history.message_count,
        );
        let turns = self.queries.get(&snapshot.query_id)?;
        turns.get(&seen).map(Arc::clone)
    }
}
