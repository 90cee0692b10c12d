//! What a model is shown with a question before it asks for anything.

use std::fmt::Write;
use std::sync::Arc;

use dodona_plugin::hooks::point;
use dodona_plugin::{Params, ToolRequest};
use dodona_proto::hook::{Passage, Preload, PreloadRequest, Preloaded};
use dodona_proto::{Message, MethodName, Mutation};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Work;
use super::ending::Stop;

/// What looks passages up unless a plugin says otherwise.
const SEARCH: &str = "search.query";

/// The most passages that are shown.
const MOST: usize = 20;

/// The most tokens that they may take.
const MOST_TOKENS: usize = 2_000;

/// What methods answer with that look passages up.
#[derive(Deserialize)]
struct Passages {
    #[serde(default)]
    passages: Vec<Passage>,
}

impl Work<'_> {
    /// Looks up what goes with the question: as many passages as the options say, of what plugins
    /// make of that. What cannot be looked up is left out: the model can still ask for it.
    pub(super) async fn preload(&mut self) -> Result<(), Stop> {
        let requests = self.wanted().await?;
        let mut passages = Vec::new();
        for request in requests {
            passages.extend(self.look_up(request).await?);
        }
        let passages = self.kept(passages).await?;
        self.preloaded = self.written(passages);
        Ok(())
    }

    async fn wanted(&mut self) -> Result<Vec<PreloadRequest>, Stop> {
        let requests = self.usual().into_iter().collect();
        let hooks = Arc::clone(&self.hooks);
        if !hooks.has_subscribers::<point::PrePreload>() {
            return Ok(requests);
        }
        let shown = Preload {
            snapshot: self.now(),
            question: self.question.clone(),
            requests,
        };
        let fired = hooks.fire::<point::PrePreload>(shown).await;
        self.carry_out(fired.effects).await?;
        Ok(fired.payload.requests)
    }

    /// A search for the question. A model that quotes searches first anyway.
    fn usual(&self) -> Option<PreloadRequest> {
        let limit = self.agent.options.preload;
        if limit == 0 || self.model.quotes() || self.toolbox.is_empty() {
            return None;
        }
        let method = MethodName::new(SEARCH).ok()?;
        self.ctx
            .methods()
            .iter()
            .find(|known| known.name == method)?;
        let params = json!({ "query": self.question, "limit": limit });
        Some(PreloadRequest { method, params })
    }

    /// Like a tool that the model asked for: the gates have their say.
    async fn look_up(&self, request: PreloadRequest) -> Result<Vec<Passage>, Stop> {
        let PreloadRequest { method, params } = request;
        let known = self.ctx.methods();
        let reads = known
            .iter()
            .any(|known| known.name == method && known.mutation == Mutation::Reads);
        if !reads {
            tracing::warn!(%method, "nothing is preloaded by a method that is not there or that changes something");
            return Ok(Vec::new());
        }
        let request = ToolRequest {
            params: Params::foreign(params),
            timeout: Some(self.agent.options.tool_timeout),
            snapshot: Some(self.now()),
        };
        let reply = self.ctx.call_tool(method.as_str(), request).await;
        let context = self.query.context();
        (self
            .agent
            .conversations
            .notify(context, reply.notifications))
        .await?;
        let why = match reply.outcome.map(serde_json::from_value::<Passages>) {
            Ok(Ok(found)) => return Ok(found.passages),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.message,
        };
        tracing::warn!(%method, why, "nothing could be preloaded");
        Ok(Vec::new())
    }

    async fn kept(&mut self, passages: Vec<Passage>) -> Result<Vec<Passage>, Stop> {
        let hooks = Arc::clone(&self.hooks);
        if !hooks.has_subscribers::<point::PostPreload>() {
            return Ok(passages);
        }
        let shown = Preloaded {
            snapshot: self.now(),
            question: self.question.clone(),
            passages,
        };
        let fired = hooks.fire::<point::PostPreload>(shown).await;
        self.carry_out(fired.effects).await?;
        Ok(fired.payload.passages)
    }

    /// The passages as a model reads them, with the numbers by which it can cite them.
    fn written(&mut self, passages: Vec<Passage>) -> Option<String> {
        let counter = self.model.counter();
        let mut text = String::from("Passages of the project that may help:");
        let mut tokens = counter.count(&text);
        let mut any = false;
        for passage in passages.into_iter().take(MOST) {
            let mut shown = json!({ "source": passage.source, "text": passage.text });
            self.citations.number(&mut shown);
            let line = one(&shown);
            tokens += counter.count(&line);
            if tokens > MOST_TOKENS {
                break;
            }
            any = true;
            text.push_str(&line);
        }
        any.then_some(text)
    }

    /// Adds what was looked up to the question it was looked up for. It is not part of the
    /// conversation: the next question has its own.
    pub(super) fn add_preloaded(&self, messages: &mut [Message]) {
        let Some(preloaded) = &self.preloaded else {
            return;
        };
        let question = messages.iter_mut().rev().find_map(|message| match message {
            Message::User { content } if *content == self.question => Some(content),
            _ => None,
        });
        if let Some(question) = question {
            question.push_str("\n\n");
            question.push_str(preloaded);
        }
    }
}

fn one(passage: &Value) -> String {
    let mut line = String::from("\n\n");
    if let Some(cite) = passage["cite"].as_u64() {
        let _ = write!(line, "[{cite}] ");
    }
    if let Some(path) = passage["source"]["path"].as_str() {
        let _ = writeln!(line, "{path}");
    }
    line.push_str(passage["text"].as_str().unwrap_or_default());
    line
}
