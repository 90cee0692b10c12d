//! The hook points of a query, and the events that go with them.
//!
//! Each method here is one moment of the loop: it shows plugins what is there, goes on with what
//! they made of it, has their effects done, and journals what they saw.

use std::sync::Arc;

use dodona_llm::ModelRequest;
use dodona_plugin::activation::EventDraft;
use dodona_plugin::hooks::point;
use dodona_plugin::{Behalf, CallError};
use dodona_proto::hook::{
    ModelCall, ModelOptionsEdit, ModelResponse, QueryReceived, SessionResolved, TurnCompleted,
};
use dodona_proto::{
    DeliverAt, Message, Notification, PluginEffect, PluginName, QuerySnapshot, Severity,
};
use serde_json::{Value, json};

use super::ending::QueryError;
use super::turn::{ModelOutput, RawOutput};
use super::{QueryRun, emit};
use crate::conversation::Appended;
use crate::notify::notify;

/// What is told before a request that follows no tool.
const AT_START: &[DeliverAt] = &[DeliverAt::TurnStart, DeliverAt::Immediate];

/// What is told before a request that tools came before.
const AFTER_TOOLS: &[DeliverAt] = &[
    DeliverAt::TurnStart,
    DeliverAt::AfterTool,
    DeliverAt::Immediate,
];

impl QueryRun<'_> {
    /// How the query stands now.
    pub(super) fn now(&self) -> Arc<QuerySnapshot> {
        Arc::new(self.snapshot.clone())
    }

    /// Keeps the snapshot in step with what was stored.
    pub(super) fn stored(&mut self, appended: &Appended) {
        self.snapshot.tokens_used = appended.tokens_used;
        self.snapshot.exchanges.to = appended.position;
    }

    /// It is known which conversation the query belongs to.
    pub(super) async fn session_resolved(&mut self) -> Result<(), QueryError> {
        let is_new = self.query.begins_session();
        if is_new {
            let about = json!({ "snapshot": self.snapshot, "model": self.model.name() });
            self.publish("session.start", about).await?;
        }
        let hooks = Arc::clone(&self.hooks);
        let shown = || SessionResolved {
            snapshot: self.now(),
            is_new,
            model: self.model.name().to_owned(),
        };
        if let Some(fired) = hooks.fire_with::<point::SessionResolved>(shown).await {
            self.apply_effects(fired.effects).await?;
        }
        Ok(())
    }

    /// The question has come.
    pub(super) async fn query_received(&mut self) -> Result<(), QueryError> {
        let about = json!({
            "snapshot": self.snapshot,
            "question": self.question,
        });
        self.publish("query.start", about).await?;
        let hooks = Arc::clone(&self.hooks);
        let shown = || QueryReceived {
            snapshot: self.now(),
            question: self.question.clone(),
        };
        if let Some(fired) = hooks.fire_with::<point::QueryReceived>(shown).await {
            self.apply_effects(fired.effects).await?;
        }
        Ok(())
    }

    /// Announces the turn, and lets plugins change the request.
    pub(super) async fn apply_request_hooks(
        &mut self,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, QueryError> {
        let about = json!({
            "snapshot": self.snapshot,
            "model": self.model.name(),
        });
        self.publish("agent.turn.start", about).await?;
        let hooks = Arc::clone(&self.hooks);
        self.plain.clone_from(&request.messages);
        if hooks.has_subscribers::<point::PreLlmCall>() {
            let shown = self.shown(&mut request);
            let fired = hooks.fire::<point::PreLlmCall>(shown).await;
            change(&mut request, fired.payload);
            self.apply_effects(fired.effects).await?;
        }
        Ok(request)
    }

    /// Shortens the conversation if it has become too long.
    pub(super) async fn compact_if_due(
        &mut self,
        turn: u32,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, QueryError> {
        if self.is_compaction_due() {
            self.shorten(turn, &mut request).await?;
        }
        Ok(request)
    }

    /// Adds the notifications that are waiting for the model. After compaction, so that they are
    /// not summarised.
    pub(super) async fn deliver_notices(
        &mut self,
        turn: u32,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, QueryError> {
        let moments = match self.ran_tools {
            true => AFTER_TOOLS,
            false => AT_START,
        };
        if let Some(delivered) = self.query.deliver(turn, moments).await? {
            self.stored(&delivered.appended);
            for (plugin, notification) in &delivered.notifications {
                emit::delivered(self.ctx, plugin, notification).await?;
            }
            let told = Message::User {
                content: delivered.text,
            };
            self.plain.push(told.clone());
            request.messages.push(told);
        }
        Ok(request)
    }

    /// Adds the messages that the user has sent since the last request.
    pub(super) async fn take_steering(&mut self, turn: u32) -> Result<(), QueryError> {
        if let Some(appended) = self.query.take_steering(turn).await? {
            self.stored(&appended);
        }
        Ok(())
    }

    fn shown(&self, request: &mut ModelRequest) -> ModelCall {
        ModelCall {
            snapshot: self.now(),
            model: self.model.name().to_owned(),
            system: request.system.as_str().into(),
            messages: std::mem::take(&mut request.messages),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            options: ModelOptionsEdit {
                temperature: request.options.temperature,
                max_output_tokens: request.options.max_output_tokens,
            },
        }
    }

    /// Lets plugins change the output of the model before it is shown, stored or acted upon.
    pub(super) async fn apply_response_hooks(
        &mut self,
        mut said: ModelOutput,
    ) -> Result<ModelOutput, QueryError> {
        let hooks = Arc::clone(&self.hooks);
        if !hooks.has_subscribers::<point::PostLlmResponse>() {
            return Ok(said);
        }
        let heard = RawOutput {
            text: said.text.clone(),
            calls: std::mem::take(&mut said.calls),
        };
        let shown = ModelResponse {
            snapshot: self.now(),
            model: self.model.name().to_owned(),
            text: heard.text.clone(),
            calls: heard.calls.clone(),
        };
        let fired = hooks.fire::<point::PostLlmResponse>(shown).await;
        let changed = fired.payload;
        if (&changed.text, &changed.calls) != (&heard.text, &heard.calls) {
            self.heard = Some(heard);
        }
        said.take_calls(changed.calls);
        said.text = changed.text;
        // Nothing of the text was shown so far.
        let shown = self.citations.pass(self.ctx, &said.text).await?;
        self.show(shown).await?;
        let rest = self.citations.rest();
        self.show(rest).await?;
        self.show_held().await?;
        self.apply_effects(fired.effects).await?;
        Ok(said)
    }

    /// A request and the tools it asked for are done.
    pub(super) async fn turn_completed(&mut self, ended: TurnEnd<'_>) -> Result<(), QueryError> {
        let about = json!({
            "snapshot": self.snapshot,
            "is_last": ended.is_last(),
            "tool_calls": ended.tool_calls,
            "error": ended.error,
        });
        self.publish("agent.turn.end", about).await?;
        let hooks = Arc::clone(&self.hooks);
        let shown = || TurnCompleted {
            snapshot: self.now(),
            is_last: ended.is_last(),
            tool_calls: ended.tool_calls,
            answer: ended.answer.map(str::to_owned),
            error: ended.error.map(str::to_owned),
        };
        if let Some(fired) = hooks.fire_with::<point::TurnCompleted>(shown).await {
            self.apply_effects(fired.effects).await?;
        }
        Ok(())
    }

    /// Has effects done; what the model is to be told waits in the conversation's inbox.
    pub(super) async fn apply_effects(&self, effects: Vec<PluginEffect>) -> Result<(), QueryError> {
        if effects.is_empty() {
            return Ok(());
        }
        let behalf = Behalf::of(self.ctx);
        let told = self.agent.host.apply_effects(behalf, effects).await;
        self.notify(told).await
    }

    /// Stores notifications until they are delivered.
    pub(super) async fn notify(
        &self,
        notifications: Vec<(PluginName, Notification)>,
    ) -> Result<(), QueryError> {
        let (conversations, host) = (&self.agent.conversations, self.agent.host.as_ref());
        let (behalf, context) = (Behalf::of(self.ctx), self.query.context());
        Ok(notify(conversations, host, behalf, context, notifications).await?)
    }

    async fn publish(&self, kind: &'static str, payload: Value) -> Result<(), CallError> {
        let draft = EventDraft {
            kind,
            source: "agent",
            severity: Severity::Info,
            payload,
            behalf: Some(Behalf::of(self.ctx)),
            id: None,
        };
        self.agent.bus.publish(draft).await
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TurnEnd<'a> {
    pub(super) tool_calls: usize,
    pub(super) answer: Option<&'a str>,
    pub(super) error: Option<&'a str>,
}

impl TurnEnd<'_> {
    fn is_last(&self) -> bool {
        self.answer.is_some() || self.error.is_some()
    }
}

/// Takes over what plugins made of a request.
fn change(request: &mut ModelRequest, call: ModelCall) {
    request.messages = call.messages;
    request
        .tools
        .retain(|offer| call.tools.contains(&offer.name));
    request.options.temperature = call.options.temperature;
    request.options.max_output_tokens = call.options.max_output_tokens;
}
