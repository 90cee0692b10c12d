//! How a query ends, and recording it.

use dodona_llm::ModelError;
use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::DoneStatus;

use super::fire::TurnEnd;
use super::turn::ModelOutput;
use super::types::AgentResponse;
use super::{QueryRun, cite, emit};
use crate::conversation::{ConversationError, NewMessage, QueryState};

/// What a model answered, and when.
pub(super) struct Answered {
    pub(super) turn: u32,
    pub(super) said: ModelOutput,
}

/// Why a query ended without an answer.
pub(super) struct QueryError {
    state: QueryState,
    error: CallError,
    too_long: bool,
}

/// What is said of a query that was cancelled.
const CANCELLED: &str = "somebody stopped it";

impl QueryError {
    pub(super) fn cancelled() -> Self {
        CallError::new(ErrorCode::Cancelled, CANCELLED).into()
    }

    /// Whether it is because the model takes no request that long.
    pub(super) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// A model that did not answer.
    pub(super) fn model(name: &str, error: &ModelError) -> Self {
        let message = format!("the model `{name}` did not answer: {error}");
        let failed = match error {
            ModelError::TooLong { .. } => CallError::new(ErrorCode::TooLarge, message)
                .hint("begin another conversation with `--context`, or ask for less at once"),
            ModelError::Unavailable { .. } => {
                CallError::plugin("agent.model_unavailable", message).retry(true)
            }
            _ => CallError::plugin("agent.model", message),
        };
        let failed = match error.hint() {
            Some(hint) => failed.hint(hint),
            None => failed,
        };
        Self {
            too_long: matches!(error, ModelError::TooLong { .. }),
            ..failed.into()
        }
    }
}

impl From<CallError> for QueryError {
    fn from(error: CallError) -> Self {
        let state = match error.code.status() {
            DoneStatus::Cancelled => QueryState::Cancelled,
            DoneStatus::Refused => QueryState::Refused,
            DoneStatus::Limited => QueryState::Limited,
            DoneStatus::Complete | DoneStatus::Failed => QueryState::Failed,
        };
        Self {
            state,
            error,
            too_long: false,
        }
    }
}

impl From<ConversationError> for QueryError {
    fn from(error: ConversationError) -> Self {
        CallError::from(error).into()
    }
}

impl QueryRun<'_> {
    /// Stores how it ended. Only then is it told: an answer that cannot be stored is none.
    pub(super) async fn end(
        mut self,
        outcome: Result<Answered, QueryError>,
    ) -> Result<AgentResponse, CallError> {
        let ended = match outcome {
            Ok(answered) => self.complete(answered).await,
            Err(stop) => Err(stop),
        };
        match ended {
            Ok(response) => Ok(response),
            Err(stop) => Err(self.stop(stop).await),
        }
    }

    async fn complete(&mut self, answered: Answered) -> Result<AgentResponse, QueryError> {
        let Answered { turn, said } = answered;
        let response = self.response(turn, said.is_truncated());
        // The stream of the call gets the response after the conversation has the answer. It is
        // stored with it, so that a crash in between does not leave the two disagreeing.
        let unsent = serde_json::to_value(&response).ok();
        let unsent = unsent.map(|response| (self.ctx.call_id, response));
        let stored = self.query.try_answer(turn, said.text, said.opaque, unsent);
        stored.await?;
        self.agent.memorize_later(self.query.context());
        self.tell_usage().await?;
        for (index, source) in response.sources.iter().enumerate() {
            emit::source(self.ctx, index + 1, source).await?;
        }
        self.partial.clear();
        let ended = TurnEnd {
            answer: Some(&response.text),
            ..TurnEnd::default()
        };
        self.turn_completed(ended).await?;
        Ok(response)
    }

    fn response(&self, turn: u32, truncated: bool) -> AgentResponse {
        let text = self.partial.clone();
        AgentResponse {
            uncited: match self.model.quotes() {
                true => Vec::new(),
                false => cite::uncited(&text),
            },
            text,
            sources: self.citations.cited().to_vec(),
            truncated,
            model: self.model.name().to_owned(),
            turns: turn,
            usage: self.usage,
            cost_micros: self.cost_micros,
            query_id: self.query.id().to_string(),
            context_id: self.query.context().to_string(),
            agent_id: self.role.name().to_owned(),
        }
    }

    /// Tells plugins that the query ended without an answer. It has ended whatever they do.
    async fn stopped(&mut self, error: &CallError) {
        if self.snapshot.turn.iteration_count == 0 {
            return;
        }
        let ended = TurnEnd {
            error: Some(&error.message),
            ..TurnEnd::default()
        };
        if let Err(stop) = self.turn_completed(ended).await {
            tracing::warn!(error = stop.error.message, "the end of a turn was not told");
        }
    }

    /// What was shown of an answer is kept, and never taken for one: the query says how it ended.
    async fn stop(mut self, stop: QueryError) -> CallError {
        let QueryError {
            state, mut error, ..
        } = stop;
        // Providers quote what they were sent in their errors.
        self.agent.redactor.text(&mut error.message);
        let partial = std::mem::take(&mut self.partial);
        if !partial.trim().is_empty() {
            let turn = self.snapshot.turn.iteration_count;
            let said = NewMessage::Assistant {
                content: partial,
                calls: Vec::new(),
                opaque: None,
            };
            if let Err(error) = self.query.append(turn, said).await {
                tracing::debug!(%error, "the beginning of an answer was not kept");
            }
        }
        if let Err(error) = self.query.try_finish(state, Some(&error.message)).await {
            let query = self.query.id();
            tracing::error!(%query, %error, "how a query ended was not stored");
        }
        if let Err(stop) = self.tell_usage().await {
            tracing::debug!(
                error = stop.error.message,
                "what a request took was not told"
            );
        }
        self.stopped(&error).await;
        error
    }
}

impl Drop for QueryRun<'_> {
    /// Who waits for an agent that was stopped with it may be gone first, and the agent's call with
    /// him: nothing runs on there that could say how it ended.
    fn drop(&mut self) {
        if self.tool_ctx.cancel.is_cancelled() {
            self.query.was_stopped(CANCELLED);
        }
    }
}
