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

/// The output of a model in one turn.
#[derive(Debug)]
pub(super) struct ModelOutput {
    /// As the model wrote it. A reader sees other numbers in its citations.
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) opaque: Option<Value>,
    pub(super) usage: Option<Usage>,
    /// The model that answered, where it is the fallback of the one that was asked.
    pub(super) answered_by: Option<String>,
    reasoning: String,
    finish: Finish,
}

impl Default for ModelOutput {
    fn default() -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            opaque: None,
            usage: None,
            answered_by: None,
            reasoning: String::new(),
            finish: Finish::Stop,
        }
    }
}

/// The output of a model before plugins changed it.
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

/// The usage and cost of a request, until they are emitted.
pub(super) struct TurnUsage {
    usage: Usage,
    is_estimate: bool,
    cost: Option<u64>,
    /// The state of the query when the request was sent.
    snapshot: QuerySnapshot,
}

impl ModelOutput {
    pub(super) fn is_truncated(&self) -> bool {
        self.finish == Finish::Length
    }

    /// Whether the provider has sent anything of it.
    fn has_begun(&self) -> bool {
        let is_empty = self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty();
        !is_empty || self.usage.is_some()
    }

    /// Replaces the tool calls.
    pub(super) fn take_calls(&mut self, calls: Vec<ToolCall>) {
        self.calls = calls;
        unique_ids(&mut self.calls);
    }

    /// Returns an error if the output is empty or a refusal.
    pub(super) fn checked(self, model: &Arc<dyn Model>) -> Result<Self, QueryError> {
        let name = model.name();
        if self.finish == Finish::Refused {
            let message = format!("the model `{name}` will not answer this");
            return Err(CallError::new(ErrorCode::Denied, message).into());
        }
        if !self.text.trim().is_empty() {
            return Ok(self);
        }
        let why = match (self.reasoning.is_empty(), self.finish) {
            (_, Finish::Length) => "reached its output limit before the answer began",
            (false, _) => "returned reasoning and no answer",
            (true, _) => "returned an empty answer",
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
    /// Calls the model. A request that is too long for it is sent again once the conversation is
    /// shorter.
    pub(super) async fn call_model(
        &mut self,
        turn: u32,
        mut request: ModelRequest,
    ) -> Result<ModelOutput, QueryError> {
        match self.stream_answer(turn, request.clone()).await {
            Err(error) if error.is_too_long() => match self.shorten(turn, &mut request).await? {
                true => self.stream_answer(turn, request).await,
                false => Err(error),
            },
            output => output,
        }
    }

    /// Sends a request and emits the text of the answer as it arrives.
    async fn stream_answer(
        &mut self,
        turn: u32,
        request: ModelRequest,
    ) -> Result<ModelOutput, QueryError> {
        self.partial.clear();
        self.heard = None;
        let is_plain = request.messages == self.plain
            && request.tools.len() == self.basis.digest.tools.len()
            && request.options == ModelOptions::default();
        self.changed = (!is_plain).then(|| RequestDigest::of(&request));
        // Readers who see the request can see the question.
        self.query.settle().await?;
        // Kept in `self`: a cancel drops this future, and the request is accounted for all the same.
        self.output = ModelOutput::default();
        self.open_turn = Some(turn);
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
            let received = match event {
                Ok(event) => self.receive(event).await,
                Err(error) => Err(QueryError::model(self.model.name(), &error)),
            };
            if let Err(error) = received {
                self.arguments.finish(self.ctx).await?;
                self.show_held().await?;
                return Err(error);
            }
        }
        let rest = self.citations.rest();
        self.show(rest).await?;
        self.show_held().await?;
        self.open_turn = None;
        let mut output = std::mem::take(&mut self.output);
        unique_ids(&mut output.calls);
        self.query.set_answered_by(output.answered_by.clone());
        Ok(output)
    }

    async fn receive(&mut self, event: ModelEvent) -> Result<(), QueryError> {
        match event {
            ModelEvent::Text(more) => {
                self.output.text.push_str(&more);
                if !self.holds_text() {
                    let shown = self.citations.pass(self.ctx, &more).await?;
                    self.show(shown).await?;
                }
            }
            ModelEvent::Reasoning(more) => {
                self.output.reasoning.push_str(&more);
                let shown = self.reasoning_redactor.push(&more);
                if !shown.is_empty() {
                    emit::reasoning(self.ctx, &shown).await?;
                }
            }
            ModelEvent::ToolCall(call) => {
                self.arguments.finish(self.ctx).await?;
                self.output.calls.push(self.toolbox.unwrap_call(call));
            }
            ModelEvent::ToolArguments { id, name, text } => {
                // A hook that may change the calls comes before readers see them.
                if !self.holds_text() {
                    self.arguments.push(self.ctx, id, name, &text).await?;
                }
            }
            ModelEvent::Opaque(opaque) => self.output.opaque = Some(opaque),
            ModelEvent::Usage(usage) => self.output.usage = Some(usage),
            ModelEvent::Retrying {
                attempt,
                attempts,
                after,
                reason,
                model,
            } => {
                let wait = after.as_secs_f32();
                let message = format!(
                    "retrying `{model}` in {wait:.1} s (attempt {attempt} of {attempts}): {reason}"
                );
                self.ctx.progress(message, None).await?;
            }
            ModelEvent::FallingBack { model, reason } => {
                let message = format!("using the fallback model `{model}`: {reason}");
                self.output.answered_by = Some(model);
                self.ctx.progress(message, None).await?;
            }
            ModelEvent::Finished(finish) => self.output.finish = finish,
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

    /// Notes the usage and cost of a request: as the provider reports, or as counted here. Both are
    /// those of the model that answered. They are stored with the model's message.
    pub(super) fn account(&mut self, turn: u32, output: &ModelOutput) -> Result<(), QueryError> {
        let usage = output.usage.unwrap_or_else(|| self.estimate(output));
        self.usage += usage;
        let model = self.answering_model(output);
        let cost = model.price().map(|price| micros(price.cost(&usage)));
        self.cost_micros = self.cost_micros.zip(cost).map(|(sum, more)| sum + more);
        let record = UsageRecord {
            turn,
            model: model.name().to_owned(),
            path: self.tool_ctx.path.to_string(),
            tool: None,
            usage,
            cost_micros: cost,
        };
        self.query.note_usage(record, Some(self.sent()?));
        self.took = Some(TurnUsage {
            usage,
            is_estimate: output.usage.is_none(),
            cost,
            snapshot: self.snapshot.clone(),
        });
        Ok(())
    }

    /// Accounts for a request that was cancelled or that failed: what was sent, and what was
    /// received until then. A request that failed before the answer began cost nothing.
    pub(super) fn account_open_request(&mut self, was_cancelled: bool) {
        let Some(turn) = self.open_turn.take() else {
            return;
        };
        let output = std::mem::take(&mut self.output);
        if !(was_cancelled || output.has_begun()) {
            return;
        }
        if let Err(error) = self.account(turn, &output) {
            tracing::warn!(
                error = error.message(),
                "the usage of a request was not noted"
            );
        }
    }

    /// The model that answered: the one that was asked, or its fallback.
    pub(super) fn answering_model(&self, output: &ModelOutput) -> Arc<dyn Model> {
        let fallback = output.answered_by.as_deref();
        let fallback = fallback.and_then(|name| self.agent.options.models.get(name));
        fallback.unwrap_or_else(|| Arc::clone(&self.model))
    }

    /// Emits the usage of a request, once it is stored.
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
    fn sent(&self) -> Result<SentRequest, CallError> {
        let basis = self.basis.digest.clone();
        let digest = RequestDigest::new(basis, &self.plain, &ModelOptions::default());
        let digest = written(&digest)?;
        Ok(SentRequest {
            digest,
            preloaded: None,
            tools: self.choice.told(),
            changed: self.changed.as_ref().map(written).transpose()?,
            heard: self.heard.as_ref().map(written).transpose()?,
        })
    }

    fn estimate(&self, output: &ModelOutput) -> Usage {
        let counter = self.model.counter();
        let calls = output.calls.iter().map(|call| call.arguments.to_string());
        let texts = calls.chain([output.text.clone(), output.reasoning.clone()]);
        Usage {
            input_tokens: self.basis.tokens + self.snapshot.tokens_used,
            output_tokens: texts.map(|text| counter.count(&text)).sum::<usize>() as u64,
            ..Usage::default()
        }
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
