//! What models were sent, for rules that read it.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_proto::QuerySnapshot;
use serde_json::Value;

/// The messages of requests. They are in no event: conversations keep them once, and whoever has
/// the rules asked again brings what the next events need.
#[derive(Debug, Default)]
pub struct Messages {
    /// By query; then by turn and by how many there were.
    queries: HashMap<String, HashMap<(u32, u64), Arc<Value>>>,
}

impl Messages {
    /// Adds what there was in a turn of a query: how many messages, and the last of them.
    pub fn add(&mut self, query: &str, turn: u32, count: u64, last: Vec<Value>) {
        let turns = self.queries.entry(query.to_owned()).or_default();
        turns.insert((turn, count), Arc::new(Value::Array(last)));
    }

    /// What rules saw when a snapshot was made, if that was added.
    pub(super) fn then(&self, snapshot: &QuerySnapshot) -> Option<Arc<Value>> {
        let seen = (
            snapshot.turn.iteration_count,
            snapshot.history.message_count,
        );
        let turns = self.queries.get(&snapshot.query_id)?;
        turns.get(&seen).map(Arc::clone)
    }
}
