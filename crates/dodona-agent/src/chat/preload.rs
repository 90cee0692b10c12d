//! What a model is shown with a question before it asks for anything.

use std::sync::Arc;

use dodona_llm::Model;
use dodona_plugin::hooks::{Hooks, point};
use dodona_plugin::{CallCtx, Params, ToolRequest, tool_text};
use dodona_proto::hook::{Passage, Preload, PreloadRequest, Preloaded};
use dodona_proto::{
    Message, MethodName, Mutation, Notification, PluginEffect, PluginName, QuerySnapshot,
};
use serde::Deserialize;
use serde_json::json;

use super::QueryRun;
use super::cite::Citations;
use super::ending::QueryError;
use crate::agent::Agent;
use crate::conversation::{ConversationError, ExchangeOrigin};

/// What looks passages up unless a plugin says otherwise: what was said and decided before, and
/// what the project says.
const LOOK_UPS: [&str; 2] = ["agent.seek", "search.query"];

/// How a message with passages begins.
pub(super) const PASSAGES: &str =
    "Passages of the project, and of what was said before, that may help:";

/// The most bytes of a question that are searched for.
const MAX_QUERY: usize = 4_000;

/// The most passages that are shown.
const MOST: usize = 20;

/// The most tokens that they may take.
pub(super) const MAX_TOKENS: usize = 2_000;

/// What methods answer with that look passages up.
#[derive(Deserialize)]
struct Passages {
    #[serde(default)]
    passages: Vec<Passage>,
}

/// Looks up what goes with a question: as many passages as the options say, of what plugins make
/// of that. What cannot be looked up is left out: the model can still ask for it.
pub(super) struct Preloading<'a> {
    pub(super) agent: &'a Agent,
    pub(super) ctx: &'a CallCtx,
    pub(super) hooks: &'a Hooks,
    pub(super) model: &'a Arc<dyn Model>,
    pub(super) snapshot: Arc<QuerySnapshot>,
    pub(super) question: &'a str,
    /// Whether the model is offered tools: who wants it to have none wants no passages either.
    pub(super) offers_tools: bool,
    /// The most tokens that the passages may take.
    pub(super) max_tokens: usize,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Found {
    /// As the model reads it.
    pub(super) text: Option<String>,
    pub(super) effects: Vec<PluginEffect>,
    pub(super) notifications: Vec<(PluginName, Notification)>,
}

impl Preloading<'_> {
    pub(super) async fn run(&self, citations: &mut Citations) -> Found {
        let mut found = Found::default();
        let mut passages = Vec::new();
        for request in self.wanted(&mut found).await {
            passages.extend(self.look_up(request, &mut found).await);
        }
        let passages = self.kept(passages, &mut found).await;
        found.text = self.written(passages, citations);
        found
    }

    async fn wanted(&self, found: &mut Found) -> Vec<PreloadRequest> {
        let requests = self.usual();
        if !self.hooks.has_subscribers::<point::PrePreload>() {
            return requests;
        }
        let shown = Preload {
            snapshot: Arc::clone(&self.snapshot),
            question: self.question.to_owned(),
            requests,
        };
        let fired = self.hooks.fire::<point::PrePreload>(shown).await;
        found.effects.extend(fired.effects);
        fired.payload.requests
    }

    /// Searches for the question. A model that quotes searches first anyway.
    fn usual(&self) -> Vec<PreloadRequest> {
        let limit = self.agent.options.preload;
        if limit == 0 || self.model.quotes() || !self.offers_tools {
            return Vec::new();
        }
        let known = self.ctx.methods();
        let is_known = |method: &MethodName| known.iter().any(|known| known.name == *method);
        let methods = LOOK_UPS
            .iter()
            .filter_map(|name| MethodName::new(name).ok());
        let query = &self.question[..self.question.floor_char_boundary(MAX_QUERY)];
        let params = json!({ "query": query, "limit": limit });
        let request = |method| PreloadRequest {
            method,
            params: params.clone(),
        };
        methods.filter(is_known).map(request).collect()
    }

    /// Like a tool that the model asked for: the gates have their say.
    async fn look_up(&self, request: PreloadRequest, found: &mut Found) -> Vec<Passage> {
        let PreloadRequest { method, params } = request;
        let known = self.ctx.methods();
        let reads = known
            .iter()
            .any(|known| known.name == method && known.mutation == Mutation::Reads);
        if !reads {
            tracing::warn!(%method, "nothing is preloaded by a method that is not there or that changes something");
            return Vec::new();
        }
        let request = ToolRequest {
            params: Params::foreign(params),
            timeout: Some(self.agent.options.tool_timeout),
            snapshot: Some(Arc::clone(&self.snapshot)),
            on_start: None,
        };
        let reply = self.ctx.call_tool(method.as_str(), request).await;
        found.notifications.extend(reply.notifications);
        let why = match reply.outcome.map(serde_json::from_value::<Passages>) {
            Ok(Ok(found)) => return found.passages,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.message,
        };
        tracing::warn!(%method, why, "nothing could be preloaded");
        Vec::new()
    }

    async fn kept(&self, passages: Vec<Passage>, found: &mut Found) -> Vec<Passage> {
        if !self.hooks.has_subscribers::<point::PostPreload>() {
            return passages;
        }
        let shown = Preloaded {
            snapshot: Arc::clone(&self.snapshot),
            question: self.question.to_owned(),
            passages,
        };
        let fired = self.hooks.fire::<point::PostPreload>(shown).await;
        found.effects.extend(fired.effects);
        fired.payload.passages
    }

    /// The passages as a model reads them, with the numbers by which it can cite them.
    fn written(&self, passages: Vec<Passage>, citations: &mut Citations) -> Option<String> {
        let counter = self.model.counter();
        let mut text = String::from(PASSAGES);
        let mut tokens = counter.count(&text);
        let mut any = false;
        for passage in passages.into_iter().take(MOST) {
            let mut shown = json!({ "source": passage.source, "text": passage.text });
            citations.number(&mut shown);
            let line = match shown["source"].is_null() {
                // A plugin may add a text that stands nowhere.
                true => shown["text"].as_str().map(str::to_owned),
                // A source without a number has no text.
                false => tool_text::passage(&shown).filter(|_| shown["cite"].is_number()),
            };
            let Some(line) = line else {
                continue;
            };
            let line = format!("\n\n{}", line.trim_end());
            tokens += counter.count(&line);
            if tokens > self.max_tokens {
                break;
            }
            any = true;
            text.push_str(&line);
        }
        any.then_some(text)
    }
}

impl QueryRun<'_> {
    /// Looks up passages for the question, and adds them to the conversation.
    pub(super) async fn preload(&mut self) -> Result<(), QueryError> {
        let preloading = Preloading {
            agent: self.agent,
            ctx: self.ctx,
            hooks: &self.hooks,
            model: &self.model,
            snapshot: self.now(),
            question: &self.question,
            offers_tools: self.role.is_main() && !self.toolbox.is_empty(),
            max_tokens: self.preload_room(),
        };
        let found = preloading.run(&mut self.citations).await;
        self.query.note_sources(self.citations.take_unstored());
        self.notify(found.notifications).await?;
        self.apply_effects(found.effects).await?;
        let Some(text) = found.text else {
            return Ok(());
        };
        // Part of the conversation until compaction: what was sent once is sent the same way again,
        // so that the provider's cache recognises it.
        let appended = self.query.append_own(0, ExchangeOrigin::Preload, text);
        match appended.await {
            Ok(appended) => self.stored(&appended),
            Err(ConversationError::OverBudget { .. }) => {
                tracing::debug!("the question leaves no room for passages");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl QueryRun<'_> {
    /// How many tokens passages may take: at most a quarter of what the conversation leaves of the
    /// room, so that tools can still bring something.
    fn preload_room(&self) -> usize {
        let left = self.room().saturating_sub(self.snapshot.tokens_used);
        usize::try_from(left / 4)
            .unwrap_or(usize::MAX)
            .min(MAX_TOKENS)
    }
}

/// Adds the passages of a query that was recorded by a version before 0.2, in which they were part
/// of the question and of no stored message.
pub(super) fn add(messages: &mut [Message], asked: &str, preloaded: Option<&str>) {
    let Some(preloaded) = preloaded else {
        return;
    };
    let question = messages.iter_mut().rev().find_map(|message| match message {
        Message::User { content } if content == asked => Some(content),
        _ => None,
    });
    if let Some(question) = question {
        question.push_str("\n\n");
        question.push_str(preloaded);
    }
}
