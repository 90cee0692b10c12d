//! `agent.request`: one request of a query and its response, as a person reads them.

use dodona_llm::{ModelOptions, ModelRequest, RequestDigest};
use dodona_plugin::store::Redactor;
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::chat::Frame;
use crate::conversation::{Owner, QueryId};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RequestParams {
    /// The id of the query, or its end.
    #[schemars(length(min = 1))]
    query_id: String,
    /// The turn, from 1.
    #[schemars(range(min = 1))]
    turn: u32,
}

/// A request to a model and its response. Secrets are redacted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RequestResult {
    /// The query.
    query_id: QueryId,
    /// The turn, from 1.
    turn: u32,
    /// The system prompt.
    system: String,
    /// The messages, oldest first, each with `role` and `content`.
    messages: Vec<Value>,
    /// The names of the tools that the model was offered.
    tools: Vec<String>,
    /// The message of the model, with `content` and `tool_calls`.
    response: Option<Value>,
    /// What differs from the recorded request, if anything. The recording has the messages and a hash of
    /// the rest; the system prompt and the tools are built from the settings of now.
    difference: Option<String>,
}

pub(crate) async fn request(
    agent: &Agent,
    ctx: &CallCtx,
    p: RequestParams,
) -> Result<RequestResult, CallError> {
    let owner = Owner::of(ctx)?;
    let recorded = agent.conversations.recorded(&owner, &p.query_id).await?;
    let first = super::first_request(&recorded)?;
    let Some(turn) = recorded.turns.iter().find(|turn| turn.turn == p.turn) else {
        let message = format!("the query has no turn {}", p.turn);
        return Err(CallError::new(ErrorCode::NotFound, message));
    };
    let offers_tools = !super::digest(first)?.basis.tools.is_empty();
    let role = super::role(agent, ctx, &recorded).await?;
    let frame = Frame::then(agent, ctx, &role, &recorded, offers_tools).await?;
    let request = ModelRequest {
        system: frame.system.clone(),
        messages: frame.messages(turn, &recorded.info.question, super::preloaded(first)),
        tools: frame.tools.clone(),
        options: ModelOptions::default(),
    };
    let difference = super::digest(turn)?.first_difference(&RequestDigest::of(&request));
    let mut result = RequestResult {
        query_id: recorded.info.id.clone(),
        turn: turn.turn,
        tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        messages: request.messages.iter().map(shown).collect(),
        response: turn.said.as_ref().map(shown),
        difference: difference.map(|difference| difference.to_string()),
        system: request.system,
    };
    result.redact(&agent.redactor);
    Ok(result)
}

/// A message without what only its provider reads, such as signed reasoning.
fn shown(message: &dodona_proto::Message) -> Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.remove("opaque");
    }
    value
}

impl RequestResult {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.text(&mut self.system);
        for message in self.messages.iter_mut().chain(&mut self.response) {
            redactor.value(message);
        }
    }
}
