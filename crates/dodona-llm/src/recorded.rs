//! A model's answers, kept, and played again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_stream::stream;
use futures_util::stream::{BoxStream, StreamExt};
use serde::{Deserialize, Serialize};

use crate::digest::RequestDigest;
use crate::error::ModelError;
use crate::model::{Model, ModelEvent, ModelRequest};
use crate::price::Price;
use crate::scripted::Script;
use crate::tokens::TokenCounter;

/// What was asked and what was answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The name of the model that answered.
    pub model: String,
    /// In the order in which the answers ended.
    pub exchanges: Vec<Exchange>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The hash of the request, see [`request_hash`].
    pub request: String,
    /// What was said, without waits and tries: they belong to that day.
    pub script: Script,
}

/// The hash by which a recording knows a request again. Equal requests have equal hashes; one
/// letter more, and it is another. It is the SHA-256 of the request's [digest](RequestDigest), in
/// hexadecimal digits.
pub fn request_hash(request: &ModelRequest) -> String {
    RequestDigest::of(request).hash()
}

/// Passes on what a model says, and keeps it.
#[derive(Clone)]
pub struct Recorder<M> {
    model: M,
    recording: Arc<Mutex<Recording>>,
}

impl<M: Model> Recorder<M> {
    /// Records a model.
    pub fn new(model: M) -> Self {
        let recording = Recording {
            model: model.name().to_owned(),
            exchanges: Vec::new(),
        };
        Self {
            model,
            recording: Arc::new(Mutex::new(recording)),
        }
    }

    /// What was recorded so far. An answer that nobody read to its end is not in it.
    pub fn recording(&self) -> Recording {
        lock(&self.recording).clone()
    }
}

impl<M: Model> Model for Recorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let hash = request_hash(&request);
        let mut events = self.model.stream(request);
        let recording = Arc::clone(&self.recording);
        let events = stream! {
            let mut script = Script::default();
            while let Some(event) = events.next().await {
                match &event {
                    Ok(ModelEvent::Retrying { .. }) => {}
                    Ok(said) => script.events.push(said.clone()),
                    Err(error) => script.error = Some(error.clone()),
                }
                let is_last = matches!(&event, Err(_) | Ok(ModelEvent::Finished(_)));
                if is_last {
                    let script = std::mem::take(&mut script);
                    let exchange = Exchange { request: hash.clone(), script };
                    lock(&recording).exchanges.push(exchange);
                }
                yield event;
            }
        };
        events.boxed()
    }

    fn context_window(&self) -> Option<u32> {
        self.model.context_window()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn counter(&self) -> TokenCounter {
        self.model.counter()
    }
}

/// Answers from a recording. A request that was sent several times gets its answers in their
/// order, and the last one again after that.
pub struct Recorded {
    name: String,
    answers: Mutex<HashMap<String, Answers>>,
}

struct Answers {
    scripts: Vec<Script>,
    next: usize,
}

impl Recorded {
    /// Plays a recording.
    pub fn new(recording: Recording) -> Self {
        let mut answers: HashMap<String, Answers> = HashMap::new();
        for exchange in recording.exchanges {
            let same = answers.entry(exchange.request).or_insert(Answers {
                scripts: Vec::new(),
                next: 0,
            });
            same.scripts.push(exchange.script);
        }
        Self {
            name: recording.model,
            answers: Mutex::new(answers),
        }
    }

    fn answer(&self, request: &ModelRequest) -> Script {
        let hash = request_hash(request);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = answers.get_mut(&hash) else {
            let reason = format!("the recording has no answer to the request {hash}");
            return Script::error(ModelError::OffScript { reason });
        };
        let script = known.scripts[known.next].clone();
        known.next = (known.next + 1).min(known.scripts.len() - 1);
        script
    }
}

impl Model for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.answer(&request).stream()
    }
}

fn lock(recording: &Mutex<Recording>) -> std::sync::MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use serde_json::json;

    fn request(text: &str) -> ModelRequest {
        ModelRequest {
            system: text.to_owned(),
            ..ModelRequest::default()
        }
    }

    async fn ask(model: &dyn Model, text: &str) -> Vec<Result<ModelEvent, ModelError>> {
        model.stream(request(text)).collect().await
    }

    #[tokio::test]
    async fn what_was_recorded_is_said_again() {
        let scripts = [
            Script::text(&["one"]),
            Script::calls(&[("read", json!({}))]),
            Script::error(ModelError::NoQuestion),
        ];
        let recorder = Recorder::new(Scripted::new("demo", scripts));
        let mut said = Vec::new();
        for text in ["a", "b", "a"] {
            said.push(ask(&recorder, text).await);
        }
        let written = serde_json::to_string(&recorder.recording()).unwrap();
        let replay = Recorded::new(serde_json::from_str(&written).unwrap());
        assert_eq!(replay.name(), "demo");
        for (text, said) in ["a", "b", "a"].into_iter().zip(&said) {
            assert_eq!(&ask(&replay, text).await, said);
        }
        let unknown = ask(&replay, "c").await;
        assert!(matches!(&unknown[..], [Err(ModelError::OffScript { .. })]));
    }

    #[test]
    fn a_hash_tells_requests_apart() {
        assert_eq!(request_hash(&request("a")), request_hash(&request("a")));
        assert_ne!(request_hash(&request("a")), request_hash(&request("b")));
    }
}
