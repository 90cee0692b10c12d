//! The answer to a question, as its reader was told it.

use dodona_proto::Source;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::session::Session;

/// How many items are read at once, and how often.
const PAGE: u32 = 1_000;
const PAGES: usize = 100;

/// An answer with the numbers that its reader saw; a model has numbers of its own for what it cites.
#[derive(Deserialize)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) sources: Vec<Source>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Value>,
    next_after: u64,
}

/// The answer that a call has told; `None` where the journal does not have it, or has it no more.
pub(super) async fn by(session: &Session, call: &str) -> Option<Told> {
    let stream = call.split('.').next()?;
    let mut after = 0;
    for _ in 0..PAGES {
        let params = json!({ "stream_id": stream, "after": after, "limit": PAGE });
        let page: Page = session.ask("hub.stream", params).await.ok()?;
        let is_answer =
            |item: &&Value| item["content_type"] == "AgentResponse" && item["call_id"] == call;
        if let Some(item) = page.items.iter().find(is_answer) {
            return serde_json::from_value(item["data"].clone()).ok();
        }
        if page.items.is_empty() {
            break;
        }
        after = page.next_after;
    }
    None
}
