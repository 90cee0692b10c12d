//! The tool calls of queries, as far as they were seen.

use std::collections::VecDeque;
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use dodona_proto::{CallId, QuerySnapshot};
use serde_json::{Value, json};

use super::decode::Body;
use crate::format::Trigger;

/// How many queries are remembered; those that began first are forgotten first.
const MOST_QUERIES: usize = 256;

/// How many calls of one query.
const MOST_CALLS: usize = 1_000;

/// How many calls a rule is shown, the last ones.
const SHOWN: usize = 50;

/// The longest text of a result that a rule is shown, in bytes.
const LONGEST: usize = 8 * 1024;

/// What was called in each query.
#[derive(Default)]
pub(super) struct Past {
    queries: VecDeque<Query>,
}

struct Query {
    id: String,
    calls: Vec<Call>,
}

struct Call {
    /// The turn, and the place in it: results are told in the order of the calls.
    order: (u32, CallId),
    shown: Value,
}

impl Past {
    /// Notes how a tool call ended, if an agent made it in a query.
    pub(super) fn note(
        &mut self,
        event: &RecordedEvent,
        body: &Body<'_>,
        trigger: Trigger,
    ) -> Result<(), serde_json::Error> {
        let is_end = matches!(trigger, Trigger::OnToolComplete | Trigger::OnToolFailure);
        let (Some(snapshot), Some(call)) = (&body.snapshot, event.call) else {
            return Ok(());
        };
        // What is looked up before the first turn was not asked for, and what a tool calls itself
        // is its own affair.
        let by_agent = snapshot.turn.iteration_count > 0 && is_own(body);
        if !is_end || !by_agent {
            return Ok(());
        }
        let parse = |text: &str| serde_json::from_str::<Value>(text);
        let arguments = body.arguments.map(|raw| parse(raw.get())).transpose()?;
        let result = body.result.map(|raw| begin(raw.get()));
        let shown = json!({
            "name": body.tool_name,
            "arguments": arguments,
            "result": result,
            "success": trigger == Trigger::OnToolComplete,
            "timestamp": event.timestamp,
        });
        let query = self.query(&snapshot.query_id);
        if query.calls.len() < MOST_CALLS {
            let order = (snapshot.turn.iteration_count, call);
            let at = query.calls.partition_point(|known| known.order <= order);
            query.calls.insert(at, Call { order, shown });
        }
        Ok(())
    }

    fn query(&mut self, id: &str) -> &mut Query {
        let known = self.queries.iter().rposition(|query| query.id == id);
        let at = known.unwrap_or_else(|| {
            if self.queries.len() >= MOST_QUERIES {
                self.queries.pop_front();
            }
            self.queries.push_back(Query {
                id: id.to_owned(),
                calls: Vec::new(),
            });
            self.queries.len() - 1
        });
        &mut self.queries[at]
    }

    /// The calls that had ended when a snapshot was made; nothing if not all of them were seen.
    pub(super) fn tools(&self, snapshot: &QuerySnapshot) -> Option<Arc<Value>> {
        let ended = usize::try_from(snapshot.history.total_tool_calls).unwrap_or(usize::MAX);
        let mut queries = self.queries.iter().rev();
        let calls = match queries.find(|query| query.id == snapshot.query_id) {
            Some(query) => query.calls.get(..ended)?,
            None if ended == 0 => &[],
            None => return None,
        };
        let last = &calls[calls.len().saturating_sub(SHOWN)..];
        Some(Arc::new(
            last.iter().map(|call| call.shown.clone()).collect(),
        ))
    }
}

/// Whether an agent called the tool itself: `agent.vault`, and not `agent.vault.search`.
fn is_own(body: &Body<'_>) -> bool {
    body.path
        .as_deref()
        .is_some_and(|path| path.matches('.').count() == 1)
}

fn begin(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
