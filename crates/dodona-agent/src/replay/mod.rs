//! `agent.replay`: a query once more, against what was recorded of it.
//!
//! The loop is gone through again, by the code, the settings, the plugins and the rules of now, from
//! the conversation as it was then: each request is made, shown to the plugins that may change it and
//! put to the recorded model, which knows the answers to the requests that were sent then and to no
//! others; its answer is shown to plugins, and the tools it asks for are shown to the gates. Tools are
//! not run: what they answered is part of the conversation. What rules decided is asked of them, with
//! the state and at the times of then. Nothing is stored, done or delivered.

mod messages;
mod plugins;
mod requests;
mod rules;

use dodona_llm::{
    Exchange, Finish, Model, ModelEvent, ModelOptions, ModelRequest, Recorded, Recording,
    RequestDigest, Script,
};
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::{Message, ToolCall};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::chat::{Frame, RawOutput, Role};
use crate::conversation::{Owner, QueryId, QueryState, RecordedQuery, RecordedTurn};

pub(crate) use messages::{MessagesParams, MessagesResult, messages};
pub(crate) use requests::{RequestParams, RequestResult, request};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReplayParams {
    /// Which query, by its id or the end of it.
    #[schemars(length(min = 1))]
    query_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ReplayResult {
    /// Which query.
    query_id: QueryId,
    /// How it ended then.
    state: QueryState,
    /// How many requests were recorded.
    recorded: usize,
    /// How many of them were made again as they were.
    replayed: usize,
    /// Where the first one differs, if one does.
    divergence: Option<Divergence>,
    /// The answer, if the replay came to it.
    answer: Option<String>,
    /// Rules that could not be asked again about all of it, because the journal does not have what
    /// they read.
    not_asked: Vec<String>,
}

/// Where a replay is no longer what was recorded.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Divergence {
    /// In which turn.
    turn: u32,
    /// What is not as it was.
    what: String,
}

/// Replays a query.
pub(crate) async fn replay(
    agent: &Agent,
    ctx: &CallCtx,
    p: ReplayParams,
) -> Result<ReplayResult, CallError> {
    let owner = Owner::of(ctx)?;
    let recorded = agent.conversations.recorded(&owner, &p.query_id).await?;
    let first = first_request(&recorded)?;
    let digest = digest(first)?;
    let offers_tools = !digest.basis.tools.is_empty();
    let role = role(agent, ctx, &recorded).await?;
    let frame = Frame::then(agent, ctx, &role, &recorded, offers_tools).await?;
    let model = Recorded::new(recording(&recorded)?);
    let mut result = ReplayResult {
        query_id: recorded.info.id.clone(),
        state: recorded.info.state,
        recorded: recorded.turns.len(),
        replayed: 0,
        divergence: None,
        answer: None,
        not_asked: Vec::new(),
    };
    let plugins = plugins::Plugins::then(agent, ctx, &owner, &recorded).await?;
    for turn in &recorded.turns {
        let request = ModelRequest {
            system: frame.system.clone(),
            messages: frame.messages(turn, &recorded.info.question, preloaded(first)),
            tools: frame.tools.clone(),
            options: ModelOptions::default(),
        };
        let again = match once_more(&model, turn, request.clone()).await? {
            Ok(answer) => plugins.turn(turn, request).await?.map(|()| answer),
            Err(what) => Err(what),
        };
        match again {
            Ok(answer) => {
                result.replayed += 1;
                result.answer = answer.or(result.answer);
            }
            Err(what) => {
                let turn = turn.turn;
                result.divergence = Some(Divergence { turn, what });
                break;
            }
        }
    }
    let rules = rules::again(ctx, &recorded).await?;
    result.not_asked = rules.not_asked;
    if let Some(other) = rules.difference
        && (result.divergence.as_ref()).is_none_or(|known| other.comes_before(known))
    {
        result.replayed = result.replayed.min(other.requests_before());
        result.answer = None;
        result.divergence = Some(other.into());
    }
    Ok(result)
}

/// Who answered: the agent of the conversation.
async fn role(agent: &Agent, ctx: &CallCtx, recorded: &RecordedQuery) -> Result<Role, CallError> {
    let asked = Some(recorded.context.as_str());
    let context = agent.conversations.show(&Owner::of(ctx)?, asked).await?;
    Role::find(agent, ctx, &context.agent_id).await
}

fn first_request(recorded: &RecordedQuery) -> Result<&RecordedTurn, CallError> {
    recorded.turns.first().ok_or_else(|| {
        let message = "no request of this query was recorded";
        CallError::new(ErrorCode::NotFound, message)
            .hint("only queries that a model answered since version 0.2 can be replayed")
    })
}

fn preloaded(first: &RecordedTurn) -> Option<&str> {
    first.sent.preloaded.as_deref()
}

fn digest(turn: &RecordedTurn) -> Result<RequestDigest, CallError> {
    read_digest(&turn.sent.digest)
}

fn read_digest(digest: &str) -> Result<RequestDigest, CallError> {
    serde_json::from_str(digest).map_err(|error| {
        CallError::new(ErrorCode::Storage, "a recorded request cannot be read")
            .log(error.to_string())
    })
}

/// What the model said to each request.
fn recording(recorded: &RecordedQuery) -> Result<Recording, CallError> {
    let mut recording = Recording {
        model: recorded.info.model.clone().unwrap_or_default(),
        exchanges: Vec::new(),
    };
    for turn in &recorded.turns {
        recording.exchanges.push(Exchange {
            request: digest(turn)?.hash(),
            script: script(turn),
        });
    }
    Ok(recording)
}

fn script(turn: &RecordedTurn) -> Script {
    let Some((said, opaque)) = heard(turn) else {
        return Script::default();
    };
    let text = (!said.text.is_empty()).then_some(ModelEvent::Text(said.text));
    let finish = match said.calls.is_empty() {
        true => Finish::Stop,
        false => Finish::ToolCalls,
    };
    let calls = said.calls.into_iter().map(ModelEvent::ToolCall);
    Script {
        events: text
            .into_iter()
            .chain(calls)
            .chain(opaque.map(ModelEvent::Opaque))
            .chain([ModelEvent::Usage(turn.usage), ModelEvent::Finished(finish)])
            .collect(),
        error: None,
    }
}

/// What the model said in a turn, before plugins saw it; nothing where that was not kept.
fn heard(turn: &RecordedTurn) -> Option<(RawOutput, Option<Value>)> {
    let Some(Message::Assistant {
        content,
        tool_calls,
        opaque,
    }) = &turn.said
    else {
        return None;
    };
    let kept = turn.sent.heard.as_deref();
    let said = kept.and_then(|kept| serde_json::from_str(kept).ok());
    let said = said.unwrap_or_else(|| RawOutput {
        text: content.clone(),
        calls: tool_calls.clone(),
    });
    Some((said, opaque.clone()))
}

/// Sends a request once more. Answers with what came of it, or with what is not as it was.
async fn once_more(
    model: &Recorded,
    turn: &RecordedTurn,
    request: ModelRequest,
) -> Result<Result<Option<String>, String>, CallError> {
    let now = RequestDigest::of(&request);
    if let Some(difference) = digest(turn)?.first_difference(&now) {
        return Ok(Err(difference.to_string()));
    }
    let (mut text, mut calls) = (String::new(), Vec::new());
    let mut events = model.stream(request);
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Text(more)) => text.push_str(&more),
            Ok(ModelEvent::ToolCall(call)) => calls.push(call),
            Ok(_) => {}
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    let answer = calls.is_empty().then_some(text);
    Ok(same(turn, &calls).map(|()| answer))
}

/// Whether that leads to the same: the tools that ran then, each answered. Calls that plugins changed
/// are theirs.
fn same(turn: &RecordedTurn, calls: &[ToolCall]) -> Result<(), String> {
    if turn.said.is_none() || turn.sent.heard.is_some() {
        return Ok(());
    }
    let ran = |call: &ToolCall| {
        let known = turn.calls.iter().find(|ran| ran.id == call.id);
        known.is_some_and(|ran| ran.name == call.name && ran.ending.is_some())
    };
    match calls.iter().find(|call| !ran(call)) {
        Some(call) => Err(format!("the tool `{}` did not run", call.name)),
        None => Ok(()),
    }
}
