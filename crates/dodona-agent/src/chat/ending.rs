//! How a query ends, and recording it.

use dodona_llm::ModelError;
use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::DoneStatus;

use super::fire::TurnEnd;
use super::turn::ModelOutput;
use super::types::{AgentResponse, TurnLimit};
use super::{QueryRun, cite, emit};
use crate::conversation::{ConversationError, NewMessage, QueryState};

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

    pub(super) fn message(&self) -> &str {
        &self.error.message
    }

    /// Whether the request was too long for the model.
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
    /// Records the end of the query, where it was not answered.
    pub(super) async fn end(
        self,
        outcome: Result<AgentResponse, QueryError>,
    ) -> Result<AgentResponse, CallError> {
        match outcome {
            Ok(response) => Ok(response),
            Err(error) => Err(self.stop(error).await),
        }
    }

    /// Stores an answer and ends the query. Only then is the end emitted: an answer that cannot be
    /// stored is an error. `None` if the user has sent a message in the meantime: the answer is stored,
    /// and the query goes on.
    pub(super) async fn complete(
        &mut self,
        turn: u32,
        output: ModelOutput,
    ) -> Result<Option<AgentResponse>, QueryError> {
        let response = self.response(turn, &output);
        // The stream of the call gets the response after the conversation has the answer. It is
        // stored with it, so that a crash in between does not leave the two disagreeing.
        let unsent = serde_json::to_value(&response).ok();
        let unsent = unsent.map(|response| (self.ctx.call_id, response));
        let stored = (self.query).try_answer(turn, output.text, output.opaque, unsent);
        let stored = stored.await?;
        self.stored(&stored.appended);
        if !stored.is_last {
            self.tell_usage().await?;
            self.partial.clear();
            self.turn_completed(TurnEnd::default()).await?;
            return Ok(None);
        }
        self.agent.memorize_later(self.query.context());
        self.finish_answer(&response).await?;
        Ok(Some(response))
    }

    /// Stores the answer that the model gave at the turn limit, and ends the query as limited.
    pub(super) async fn complete_at_limit(
        &mut self,
        turn: u32,
        output: ModelOutput,
    ) -> Result<AgentResponse, QueryError> {
        let most = turn - 1;
        if output.text.trim().is_empty() {
            let message = format!("the model did not answer within {most} turns");
            let error = CallError::new(ErrorCode::TooManyTurns, message);
            return Err(error.hint(self.limit_hint()).into());
        }
        let mut response = self.response(turn, &output);
        let message = format!(
            "the query reached its limit of {most} turns and was answered without further tools"
        );
        let stored = self.query.answer_at_limit(turn, output.text, &message);
        stored.await?;
        response.limit = Some(TurnLimit {
            code: ErrorCode::TooManyTurns,
            message,
            hint: self.limit_hint(),
        });
        self.agent.memorize_later(self.query.context());
        self.finish_answer(&response).await?;
        Ok(response)
    }

    fn limit_hint(&self) -> String {
        let setting = self.role.max_turns_setting();
        format!("narrow the question, or raise {setting}")
    }

    /// Emits usage and sources of an answer that is stored.
    async fn finish_answer(&mut self, response: &AgentResponse) -> Result<(), QueryError> {
        self.tell_usage().await?;
        for (index, source) in response.sources.iter().enumerate() {
            emit::source(self.ctx, index + 1, source).await?;
        }
        self.partial.clear();
        let ended = TurnEnd {
            answer: Some(&response.text),
            ..TurnEnd::default()
        };
        self.turn_completed(ended).await
    }

    fn response(&self, turn: u32, output: &ModelOutput) -> AgentResponse {
        let text = self.partial.clone();
        AgentResponse {
            uncited: match self.model.quotes() {
                true => Vec::new(),
                false => cite::uncited(&text),
            },
            text,
            sources: self.citations.cited().to_vec(),
            truncated: output.is_truncated(),
            model: self.answering_model(output).name().to_owned(),
            turns: turn,
            usage: self.usage,
            cost_micros: self.cost_micros,
            query_id: self.query.id().to_string(),
            context_id: self.query.context().to_string(),
            agent_id: self.role.name().to_owned(),
            limit: None,
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
        self.account_open_request(state == QueryState::Cancelled);
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
