//! The tool calls of queries seen in a replay.

use std::collections::VecDeque;
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use dodona_proto::{CallId, QuerySnapshot};
use serde_json::{Value, json};

use super::decode::Body;
use crate::format::Trigger;

/// Maximum number of queries. The oldest are removed first.
const MOST_QUERIES: usize = 256;

/// Maximum number of calls of one query.
const MOST_CALLS: usize = 1_000;

/// Maximum number of calls in the context of a rule, the last ones.
const SHOWN: usize = 50;

/// Maximum length of a result in the context of a rule, in bytes.
const LONGEST: usize = 8 * 1024;

/// The tool calls of each query.
#[derive(Default)]
pub(super) struct Past {
    queries: VecDeque<Query>,
}

struct Query {
    id: String,
    calls: Vec<Call>,
}

struct Call {
    /// The turn and the index in it: results are in the order of the calls.
    order: (u32, CallId),
    shown: Value,
}

impl Past {
    /// Records the end of a tool call, if an agent made it in a query.
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

    /// The calls that had ended at the time of a snapshot; `None` if some were not seen.
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
