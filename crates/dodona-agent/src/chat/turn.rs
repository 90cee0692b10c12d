//! One request to the model.

use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Finish, Model, ModelEvent, ModelOptions, ModelRequest, RequestDigest};
use dodona_plugin::hooks::point;
use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{QuerySnapshot, ToolCall, Usage};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ending::QueryError;
use super::{QueryRun, emit};
use crate::conversation::{SentRequest, UsageRecord};

/// What a model said in one turn.
#[derive(Debug)]
pub(super) struct ModelOutput {
    /// As the model said it; a reader sees other numbers in its citations.
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) opaque: Option<Value>,
    pub(super) usage: Option<Usage>,
    finish: Finish,
    has_thought: bool,
}

/// What a model said, as it said it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RawOutput {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
}

fn written(part: &impl Serialize) -> Result<String, CallError> {
    serde_json::to_string(part).map_err(|error| {
        CallError::new(ErrorCode::Internal, "a request could not be recorded")
            .log(error.to_string())
    })
}

/// What a request took, until it is told.
pub(super) struct TurnUsage {
    usage: Usage,
    is_estimate: bool,
    cost: Option<u64>,
    /// How the query stood when it was sent.
    snapshot: QuerySnapshot,
}

impl ModelOutput {
    pub(super) fn is_truncated(&self) -> bool {
        self.finish == Finish::Length
    }

    /// Puts other calls in the place of those that the model asked for.
    pub(super) fn take_calls(&mut self, calls: Vec<ToolCall>) {
        self.calls = calls;
        unique_ids(&mut self.calls);
    }

    /// Refuses what is no answer.
    pub(super) fn checked(self, model: &Arc<dyn Model>) -> Result<Self, QueryError> {
        let name = model.name();
        if self.finish == Finish::Refused {
            let message = format!("the model `{name}` will not answer this");
            return Err(CallError::new(ErrorCode::Denied, message).into());
        }
        if !self.text.trim().is_empty() {
            return Ok(self);
        }
        let why = match (self.has_thought, self.finish) {
            (_, Finish::Length) => "reached its limit before it said anything",
            (true, _) => "thought and said nothing",
            (false, _) => "said nothing",
        };
        let error = CallError::plugin("agent.empty_answer", format!("the model `{name}` {why}"));
        Err(error
            .hint("ask again, raise the model's `max_output_tokens`, or choose another model")
            .into())
    }
}

/// How long the end of a text is held back that could be the start of a secret.
const MOST_HELD: Duration = Duration::from_millis(100);

impl QueryRun<'_> {
    /// Asks the model. A request that is too long for it is sent again once the conversation is
    /// shorter.
    pub(super) async fn ask_shortened(
        &mut self,
        turn: u32,
        mut request: ModelRequest,
    ) -> Result<ModelOutput, QueryError> {
        match self.ask(request.clone()).await {
            Err(stop) if stop.is_too_long() => match self.shorten(turn, &mut request).await? {
                true => self.ask(request).await,
                false => Err(stop),
            },
            said => said,
        }
    }

    /// Asks the model; its text is passed on as it comes.
    pub(super) async fn ask(&mut self, request: ModelRequest) -> Result<ModelOutput, QueryError> {
        self.partial.clear();
        self.heard = None;
        let is_plain = request.messages == self.plain
            && request.tools.len() == self.basis.digest.tools.len()
            && request.options == ModelOptions::default();
        self.changed = (!is_plain).then(|| RequestDigest::of(&request));
        let mut said = ModelOutput {
            text: String::new(),
            calls: Vec::new(),
            opaque: None,
            usage: None,
            finish: Finish::Stop,
            has_thought: false,
        };
        // Whoever sees the request can see the question.
        self.query.settle().await?;
        let mut events = self.model.stream(request);
        loop {
            let event = match self.is_holding() {
                false => events.next().await,
                true => match tokio::time::timeout(MOST_HELD, events.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.release_held().await?;
                        continue;
                    }
                },
            };
            let Some(event) = event else { break };
            let heard = match event {
                Ok(event) => self.hear(event, &mut said).await,
                Err(error) => Err(QueryError::model(self.model.name(), &error)),
            };
            if let Err(stop) = heard {
                self.show_held().await?;
                return Err(stop);
            }
        }
        let rest = self.citations.rest();
        self.show(rest).await?;
        self.show_held().await?;
        unique_ids(&mut said.calls);
        Ok(said)
    }

    async fn hear(&mut self, event: ModelEvent, said: &mut ModelOutput) -> Result<(), QueryError> {
        match event {
            ModelEvent::Text(more) => {
                said.text.push_str(&more);
                if !self.holds_text() {
                    let shown = self.citations.pass(self.ctx, &more).await?;
                    self.show(shown).await?;
                }
            }
            ModelEvent::Reasoning(more) => {
                said.has_thought = true;
                let shown = self.reasoning_redactor.push(&more);
                if !shown.is_empty() {
                    emit::reasoning(self.ctx, &shown).await?;
                }
            }
            ModelEvent::ToolCall(call) => said.calls.push(call),
            ModelEvent::Opaque(opaque) => said.opaque = Some(opaque),
            ModelEvent::Usage(usage) => said.usage = Some(usage),
            ModelEvent::Retrying {
                attempt,
                after,
                reason,
                model,
            } => {
                let wait = after.as_secs_f32();
                let message =
                    format!("asking `{model}` again in {wait:.1} s (try {attempt}): {reason}");
                self.ctx.progress(message, None).await?;
            }
            ModelEvent::Finished(finish) => said.finish = finish,
        }
        Ok(())
    }

    /// Whether text is shown only after `POST_LLM_RESPONSE`: a hook there may change it, and what
    /// readers have seen cannot be taken back.
    pub(super) fn holds_text(&self) -> bool {
        self.hooks.has_subscribers::<point::PostLlmResponse>()
    }

    pub(super) async fn show(&mut self, text: String) -> Result<(), QueryError> {
        let shown = self.text_redactor.push(&text);
        if !shown.is_empty() {
            emit::text(self.ctx, &shown).await?;
        }
        self.partial.push_str(&text);
        Ok(())
    }

    fn is_holding(&self) -> bool {
        self.text_redactor.is_holding() || self.reasoning_redactor.is_holding()
    }

    /// Shows what is held back because it could be the start of a secret: the model pauses.
    async fn release_held(&mut self) -> Result<(), QueryError> {
        let (reasoning, text) = (
            self.reasoning_redactor.release(),
            self.text_redactor.release(),
        );
        self.emit_held(reasoning, text).await
    }

    /// The same when no more text comes.
    pub(super) async fn show_held(&mut self) -> Result<(), QueryError> {
        let (reasoning, text) = (
            self.reasoning_redactor.finish(),
            self.text_redactor.finish(),
        );
        self.emit_held(reasoning, text).await
    }

    async fn emit_held(&self, reasoning: String, text: String) -> Result<(), QueryError> {
        if !reasoning.is_empty() {
            emit::reasoning(self.ctx, &reasoning).await?;
        }
        if !text.is_empty() {
            emit::text(self.ctx, &text).await?;
        }
        Ok(())
    }

    /// Notes what a request took: as the provider says, or as it was counted. It is stored with what
    /// the model said.
    pub(super) fn account(&mut self, turn: u32, said: &ModelOutput) -> Result<(), QueryError> {
        let usage = said.usage.unwrap_or_else(|| self.estimate(said));
        self.usage += usage;
        let cost = self.model.price().map(|price| micros(price.cost(&usage)));
        self.cost_micros = self.cost_micros.zip(cost).map(|(sum, more)| sum + more);
        let record = UsageRecord {
            turn,
            model: self.model.name().to_owned(),
            path: self.tool_ctx.path.to_string(),
            tool: None,
            usage,
            cost_micros: cost,
        };
        self.query.note_usage(record, Some(self.sent(turn)?));
        self.took = Some(TurnUsage {
            usage,
            is_estimate: said.usage.is_none(),
            cost,
            snapshot: self.snapshot.clone(),
        });
        Ok(())
    }

    /// Tells what a request took, once that is stored.
    pub(super) async fn tell_usage(&mut self) -> Result<(), QueryError> {
        if let Some(TurnUsage {
            usage,
            is_estimate,
            cost,
            snapshot,
        }) = self.took.take()
        {
            emit::usage(self.ctx, usage, is_estimate, cost, &snapshot).await?;
        }
        Ok(())
    }

    /// What tells the newest request from others, for a replay.
    fn sent(&self, turn: u32) -> Result<SentRequest, CallError> {
        let basis = self.basis.digest.clone();
        let digest = RequestDigest::new(basis, &self.plain, &ModelOptions::default());
        let digest = written(&digest)?;
        let preloaded = self.preloaded.clone().filter(|_| turn == 1);
        Ok(SentRequest {
            digest,
            preloaded,
            tools: self.choice.told(),
            changed: self.changed.as_ref().map(written).transpose()?,
            heard: self.heard.as_ref().map(written).transpose()?,
        })
    }

    fn estimate(&self, said: &ModelOutput) -> Usage {
        let counter = self.model.counter();
        let calls = said.calls.iter().map(|call| call.arguments.to_string());
        let written =
            calls.map(|text| counter.count(&text)).sum::<usize>() + counter.count(&said.text);
        Usage {
            input_tokens: self.basis.tokens + self.snapshot.tokens_used,
            output_tokens: written as u64,
            ..Usage::default()
        }
    }

    /// Whether the user said something that the model has not seen. Then what it said is none, and
    /// what it took is all there is to store.
    pub(super) async fn was_steered(&mut self) -> Result<bool, QueryError> {
        let is_behind = self.query.is_behind().await?;
        if is_behind {
            self.query.save_noted().await?;
            self.tell_usage().await?;
        }
        Ok(is_behind)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price is not negative, and no answer costs a billion dollars"
)]
pub(super) fn micros(dollars: f64) -> u64 {
    (dollars * 1e6).round().max(0.0) as u64
}

/// Providers are known to leave ids out and to give one twice; each call is answered by its own.
fn unique_ids(calls: &mut [ToolCall]) {
    for index in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(index);
        let id = &mut rest[0].id;
        if id.is_empty() || before.iter().any(|call| call.id == *id) {
            *id = format!("call-{}-{}", index + 1, uuid::Uuid::now_v7().simple());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_an_id_of_its_own() {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "x".to_owned(),
            arguments: Value::Null,
        };
        let mut calls = vec![call("a"), call(""), call("a"), call("b")];
        unique_ids(&mut calls);
        assert_eq!((calls[0].id.as_str(), calls[3].id.as_str()), ("a", "b"));
        assert!(calls[1].id.starts_with("call-2-") && calls[2].id.starts_with("call-3-"));
    }

    #[test]
    fn costs_are_counted_in_millionths() {
        assert_eq!(micros(0.001_234_5), 1_235);
        assert_eq!(micros(-1.0), 0);
    }
}
