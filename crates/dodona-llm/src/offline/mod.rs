//! A model that is none: it searches, reads and quotes.

mod definition;
mod excerpt;
mod found;
mod words;

use std::collections::HashSet;

use dodona_proto::{Message, NOTICES, ToolCall, Usage};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;

use crate::error::ModelError;
use crate::model::{Finish, Model, ModelEvent, ModelRequest, ToolOffer};
use crate::price::Price;
use excerpt::{Aim, Span};
use found::{Found, Wish};

/// The searches it knows how to ask, in the order it asks them.
const SEARCHES: &[&str] = &["code_search", "vault_search", "thread_seek", "agent_seek"];

/// The searches that know phrases, for the sentence that says what something is: its few words are
/// everywhere, and together nearly nowhere else.
const DEFINED: &[&str] = &["code_search", "vault_search"];

/// The search for reasons, which are told where something was changed.
const HISTORY: &str = "code_log";

/// What reads lines of a file.
const READ: &str = "code_read";

/// How many passages each search is asked for. More is what a bundled rule advises models against.
const PER_SEARCH: u32 = 6;

/// How many passages are quoted.
const QUOTED: usize = 4;

/// Answers from what the tools find, without any model: it asks every search it is offered,
/// reads the lines that answer best, quotes them, and says that it did.
pub struct Offline;

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn quotes(&self) -> bool {
        true
    }

    /// Nothing is sent anywhere.
    fn price(&self) -> Option<Price> {
        Some(Price {
            input: 0.0,
            output: 0.0,
            cached_input: None,
            cache_write: None,
        })
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let events = match Inquiry::of(&request.messages) {
            None => vec![Err(ModelError::NoQuestion)],
            Some(inquiry) => finished(inquiry.next(&request.tools)),
        };
        stream::iter(events).boxed()
    }
}

/// The events of an answer, and its end.
fn finished(events: Vec<ModelEvent>) -> Vec<Result<ModelEvent, ModelError>> {
    let calls = |event: &ModelEvent| matches!(event, ModelEvent::ToolCall(_));
    let finish = match events.iter().any(calls) {
        true => Finish::ToolCalls,
        false => Finish::Stop,
    };
    let nothing = ModelEvent::Usage(Usage::default());
    let end = ModelEvent::Finished(finish);
    events.into_iter().chain([nothing, end]).map(Ok).collect()
}

/// A question, and what was done about it so far.
struct Inquiry<'m> {
    question: &'m str,
    words: Vec<String>,
    wish: Wish,
    /// What came after the question.
    since: &'m [Message],
}

impl<'m> Inquiry<'m> {
    /// The newest question of a conversation.
    fn of(all: &'m [Message]) -> Option<Self> {
        let mut messages = all.iter().enumerate().rev();
        let (asked, question) = messages.find_map(|(at, message)| match message {
            // What the system says is no question.
            Message::User { content } if !content.starts_with(NOTICES) => Some((at, content)),
            _ => None,
        })?;
        Some(Self {
            question,
            words: words::of_question(question),
            wish: Wish::of(question),
            since: &all[asked + 1..],
        })
    }

    /// The next step: search, then read, then answer.
    fn next(&self, tools: &[ToolOffer]) -> Vec<ModelEvent> {
        let offered = |name: &str| tools.iter().any(|tool| tool.name == name);
        let is_notice = |message: &Message| matches!(message, Message::User { .. });
        if self.since.iter().all(is_notice) {
            return self.search(offered);
        }
        let found = self.found();
        let has_read = self.calls().any(|call| call.name == READ);
        let reads: Vec<ToolCall> = match has_read || !offered(READ) {
            true => Vec::new(),
            false => self.reads(&found),
        };
        match reads.is_empty() {
            false => reads.into_iter().map(ModelEvent::ToolCall).collect(),
            true => vec![ModelEvent::Text(self.answer(&found))],
        }
    }

    fn search(&self, offered: impl Fn(&str) -> bool) -> Vec<ModelEvent> {
        let history = words::asks_for_reasons(self.question).then_some(&HISTORY);
        let everywhere = SEARCHES.iter().chain(history);
        let phrase = words::defining_phrase(self.question).map(|phrase| format!("\"{phrase}\""));
        let defined = phrase.iter().flat_map(|phrase| {
            let searches = DEFINED.iter();
            searches.map(move |name| (name, phrase.as_str()))
        });
        let searches = everywhere.map(|name| (name, self.question)).chain(defined);
        let calls: Vec<ModelEvent> = (1..)
            .zip(searches.filter(|(name, _)| offered(name)))
            .map(|(n, (name, query))| ToolCall {
                id: format!("search-{n}"),
                name: (*name).to_owned(),
                arguments: json!({ "query": query, "limit": PER_SEARCH }),
            })
            .map(ModelEvent::ToolCall)
            .collect();
        match calls.is_empty() {
            false => calls,
            true => vec![ModelEvent::Text(
                "No search is available, and without a model there is no other way to answer."
                    .to_owned(),
            )],
        }
    }

    /// The passages that answer, best first.
    fn found(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self.since.iter().flat_map(found::in_result).collect();
        found::rank(&mut found, &self.words, &self.wish);
        found.truncate(QUOTED);
        found
    }

    fn aim(&self) -> Aim<'_> {
        Aim {
            words: &self.words,
            wish: &self.wish,
        }
    }

    fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.since.iter().flat_map(|message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
            _ => &[],
        })
    }

    /// Reads the lines of the passages that say most, so that what is cited is what is quoted.
    fn reads(&self, found: &[Found]) -> Vec<ToolCall> {
        let spans = excerpt::spans(found, &self.aim());
        let calls = (1..).zip(spans).map(|(n, span)| ToolCall {
            id: format!("read-{n}"),
            name: READ.to_owned(),
            arguments: json!({ "path": span.path, "from": span.from, "to": span.to }),
        });
        calls.collect()
    }

    /// What is quoted of the passages, each line once.
    fn quotes(&self, found: &[Found]) -> Vec<String> {
        let reads: Vec<found::Lines> = self.since.iter().filter_map(found::lines).collect();
        let mut quoted = HashSet::new();
        let aim = self.aim();
        let quote = |passage: &Found| {
            let span = Span::of(passage, &aim);
            let read = span.and_then(|span| reads.iter().find(|lines| lines.hold(&span)));
            match read {
                Some(lines) => quoted
                    .insert(lines.cite)
                    .then(|| excerpt::quote_lines(&lines.text, passage, lines.cite, &aim)),
                None => Some(excerpt::quote(passage, &aim)),
            }
        };
        found.iter().filter_map(quote).collect()
    }

    fn answer(&self, found: &[Found]) -> String {
        let quotes = self.quotes(found);
        let failed = self.since.iter().find_map(found::failure);
        match (quotes.is_empty(), failed) {
            (true, Some(error)) => format!(
                "Nothing was found, and not every search came to an end: {error}. Ask again, or look with `dodona search`."
            ),
            (true, None) => "Nothing in this project answers that. (No model was used: the answer would have been quoted from its notes and code.)".to_owned(),
            (false, _) => format!(
                "{}\n\nNo model was used: these are the passages of this project that answer best.",
                quotes.join("\n\n")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_no_question() {
        let user = |content: &str| Message::User {
            content: content.to_owned(),
        };
        let notice = user(&format!("{NOTICES}\n- [info] many results"));
        let asked = user("How does login work?");
        let call = ToolCall {
            id: "search-1".to_owned(),
            name: "vault_search".to_owned(),
            arguments: json!({}),
        };
        let searched = Message::Assistant {
            content: String::new(),
            tool_calls: vec![call],
            opaque: None,
        };
        for (messages, has_searched) in [
            (vec![asked.clone()], false),
            (vec![asked.clone(), notice.clone()], false),
            (vec![asked.clone(), searched, notice.clone()], true),
        ] {
            let inquiry = Inquiry::of(&messages).unwrap();
            assert_eq!(inquiry.question, "How does login work?");
            let offered = [ToolOffer {
                name: "vault_search".to_owned(),
                description: String::new(),
                parameters: json!({}),
            }];
            let searches = matches!(inquiry.next(&offered)[..], [ModelEvent::ToolCall(_)]);
            assert_eq!(searches, !has_searched, "{messages:?}");
        }
        assert!(Inquiry::of(&[notice]).is_none());
    }
}
