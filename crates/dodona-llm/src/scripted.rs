//! A model that says what it was told to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::{ToolCall, Usage};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;
use crate::model::{Finish, Model, ModelEvent, ModelRequest};

/// What a scripted model says to one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// In this order.
    pub events: Vec<ModelEvent>,
    /// How it ends, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelError>,
}

impl Script {
    /// An answer of some pieces of text.
    pub fn text(pieces: &[&str]) -> Self {
        let texts = pieces
            .iter()
            .map(|piece| ModelEvent::Text((*piece).to_owned()));
        Self::finished(texts, Finish::Stop)
    }

    /// A wish for tools, by name and arguments; their ids are `call-1`, `call-2` and so on.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let events = calls.iter().zip(1..).map(|((name, arguments), number)| {
            ModelEvent::ToolCall(ToolCall {
                id: format!("call-{number}"),
                name: (*name).to_owned(),
                arguments: arguments.clone(),
            })
        });
        Self::finished(events, Finish::ToolCalls)
    }

    /// A failure.
    pub fn error(error: ModelError) -> Self {
        Self {
            events: Vec::new(),
            error: Some(error),
        }
    }

    /// The same, with what it took.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        let end = self
            .events
            .iter()
            .position(|event| matches!(event, ModelEvent::Finished(_)))
            .unwrap_or(self.events.len());
        self.events.insert(end, ModelEvent::Usage(usage));
        self
    }

    fn finished(events: impl Iterator<Item = ModelEvent>, finish: Finish) -> Self {
        Self {
            events: events.chain([ModelEvent::Finished(finish)]).collect(),
            error: None,
        }
    }

    pub(crate) fn stream(self) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let events = self.events.into_iter().map(Ok);
        stream::iter(events.chain(self.error.map(Err))).boxed()
    }
}

/// Answers each request with the next script, and remembers what it was asked.
#[derive(Debug, Clone)]
pub struct Scripted {
    name: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    scripts: VecDeque<Script>,
    requests: Vec<ModelRequest>,
}

impl Scripted {
    /// A model of this name with these answers.
    pub fn new(name: impl Into<String>, scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            name: name.into(),
            state: Arc::new(Mutex::new(State {
                scripts: scripts.into_iter().collect(),
                requests: Vec::new(),
            })),
        }
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.clone()
    }

    /// How many answers nobody has asked for.
    pub fn left(&self) -> usize {
        self.lock().scripts.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let mut state = self.lock();
        state.requests.push(request);
        let asked = state.requests.len();
        match state.scripts.pop_front() {
            Some(script) => script.stream(),
            None => {
                let reason = format!("the script has no answer to request {asked}");
                Script::error(ModelError::OffScript { reason }).stream()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn scripts_come_in_order_and_then_no_more() {
        let usage = Usage {
            output_tokens: 2,
            ..Usage::default()
        };
        let model = Scripted::new(
            "demo",
            [
                Script::calls(&[("read", json!({ "path": "a" }))]),
                Script::text(&["Hello", "."]).usage(usage),
            ],
        );
        let ask = |system: &str| {
            model.stream(ModelRequest {
                system: system.to_owned(),
                ..ModelRequest::default()
            })
        };
        let first: Vec<_> = ask("one").collect().await;
        assert!(matches!(&first[0], Ok(ModelEvent::ToolCall(call)) if call.id == "call-1"));
        assert_eq!(first[1], Ok(ModelEvent::Finished(Finish::ToolCalls)));
        let second: Vec<_> = ask("two").collect().await;
        assert_eq!(second[2], Ok(ModelEvent::Usage(usage)));
        assert_eq!(second.len(), 4);
        let third: Vec<_> = ask("three").collect().await;
        assert!(matches!(&third[..], [Err(ModelError::OffScript { .. })]));
        let systems: Vec<String> = model.requests().into_iter().map(|r| r.system).collect();
        assert_eq!(systems, ["one", "two", "three"]);
    }
}
