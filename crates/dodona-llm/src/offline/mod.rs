//! A model that is none: it searches, reads and quotes.

mod excerpt;
mod found;
mod words;

use dodona_proto::{Message, ToolCall};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;

use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ToolOffer};
use found::Found;

/// The tools it knows how to ask, in the order it asks them.
const SEARCHES: &[&str] = &["code_search", "vault_search"];

/// How many passages each search is asked for.
const PER_SEARCH: u32 = 8;

/// How many passages are quoted.
const QUOTED: usize = 4;

/// Answers from what the tools find, without any model: it asks every search it is offered,
/// then quotes the passages that answer best, and says that it did.
pub struct Offline;

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let events = match question(&request.messages) {
            None => vec![Err(ModelError::NoQuestion)],
            Some((question, [])) => searches(question, &request.tools),
            Some((question, results)) => vec![Ok(ModelEvent::Text(answer(question, results)))],
        };
        stream::iter(events).boxed()
    }
}

/// The newest question, and what tools have answered since.
fn question(messages: &[Message]) -> Option<(&str, &[Message])> {
    let asked = messages
        .iter()
        .rposition(|message| matches!(message, Message::User { .. }))?;
    let Message::User { content } = &messages[asked] else {
        return None;
    };
    Some((content, &messages[asked + 1..]))
}

fn searches(question: &str, tools: &[ToolOffer]) -> Vec<Result<ModelEvent, ModelError>> {
    let offered = SEARCHES
        .iter()
        .filter(|name| tools.iter().any(|tool| tool.name == **name));
    let calls: Vec<_> = offered
        .enumerate()
        .map(|(index, name)| ToolCall {
            id: format!("offline-{}", index + 1),
            name: (*name).to_owned(),
            arguments: json!({ "query": question, "limit": PER_SEARCH }),
        })
        .map(|call| Ok(ModelEvent::ToolCall(call)))
        .collect();
    match calls.is_empty() {
        false => calls,
        true => vec![Ok(ModelEvent::Text(
            "No search is available, and without a model there is no other way to answer."
                .to_owned(),
        ))],
    }
}

fn answer(question: &str, results: &[Message]) -> String {
    let words = words::of_question(question);
    let mut found: Vec<Found> = results.iter().flat_map(found::in_result).collect();
    found::rank(&mut found, &words);
    found.truncate(QUOTED);
    if found.is_empty() {
        return "Nothing in this project answers that. (No model was used: the answer would have been quoted from its notes and code.)".to_owned();
    }
    let quotes: Vec<String> = found
        .iter()
        .map(|passage| excerpt::quote(passage, &words))
        .collect();
    format!(
        "{}\n\nNo model was used: these are the passages of this project that answer best.",
        quotes.join("\n\n")
    )
}
