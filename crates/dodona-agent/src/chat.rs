//! The turn loop.

use dodona_llm::{Model, ModelEvent, ModelRequest};
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::{Message, ToolCall};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::cite::Citations;
use crate::emit;
use crate::tools::Toolbox;
use crate::types::AgentResponse;

/// How many times a model is asked for one question.
const MAX_TURNS: u32 = 30;

/// What a model said in one turn.
struct Turn {
    /// As the model said it.
    said: String,
    /// As the reader sees it.
    shown: String,
    calls: Vec<ToolCall>,
    /// What the model wants back with its message.
    opaque: Option<Value>,
}

/// Answers a question: offers the tools, asks the model, runs what it wants, until it answers.
pub(crate) async fn answer(
    ctx: &CallCtx,
    model: &dyn Model,
    question: String,
) -> Result<AgentResponse, CallError> {
    let toolbox = Toolbox::load(ctx).await?;
    let mut messages = vec![Message::User { content: question }];
    let mut citations = Citations::default();
    for turns in 1..=MAX_TURNS {
        let request = ModelRequest {
            messages: messages.clone(),
            tools: toolbox.offers(),
            ..ModelRequest::default()
        };
        let turn = ask(ctx, model, request, &mut citations).await?;
        if turn.calls.is_empty() {
            tell_sources(ctx, &citations).await?;
            let (text, sources, model) = (
                turn.shown,
                citations.cited().to_vec(),
                model.name().to_owned(),
            );
            return Ok(AgentResponse {
                text,
                sources,
                model,
                turns,
            });
        }
        messages.push(Message::Assistant {
            content: turn.said,
            tool_calls: turn.calls.clone(),
            opaque: turn.opaque,
        });
        messages.extend(run_tools(ctx, &toolbox, &turn.calls, &mut citations).await?);
    }
    Err(CallError::new(
        ErrorCode::TooManyCalls,
        format!("the model did not come to an answer in {MAX_TURNS} turns"),
    ))
}

/// One request to the model: its text, passed on as it comes, and the tools it wants.
async fn ask(
    ctx: &CallCtx,
    model: &dyn Model,
    request: ModelRequest,
    citations: &mut Citations,
) -> Result<Turn, CallError> {
    let mut events = model.stream(request);
    let mut turn = Turn {
        said: String::new(),
        shown: String::new(),
        calls: Vec::new(),
        opaque: None,
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Text(more)) => {
                turn.said.push_str(&more);
                show(ctx, &mut turn, citations.pass(ctx, &more).await?).await?;
            }
            Ok(ModelEvent::ToolCall(call)) => turn.calls.push(call),
            Ok(ModelEvent::Opaque(value)) => turn.opaque = Some(value),
            Ok(
                ModelEvent::Reasoning(_)
                | ModelEvent::Usage(_)
                | ModelEvent::Retrying { .. }
                | ModelEvent::Finished(_),
            ) => {}
            Err(error) => {
                let message = format!("the model `{}` did not answer: {error}", model.name());
                return Err(CallError::plugin("agent.model", message));
            }
        }
    }
    show(ctx, &mut turn, citations.rest()).await?;
    Ok(turn)
}

async fn show(ctx: &CallCtx, turn: &mut Turn, text: String) -> Result<(), CallError> {
    if !text.is_empty() {
        emit::text(ctx, &text).await?;
        turn.shown.push_str(&text);
    }
    Ok(())
}

/// Tells what the answer cites.
async fn tell_sources(ctx: &CallCtx, citations: &Citations) -> Result<(), CallError> {
    for (index, source) in citations.cited().iter().enumerate() {
        emit::source(ctx, index + 1, source).await?;
    }
    Ok(())
}

/// Runs the tools the model wants. What went wrong is told to the model, not to the user: it
/// may know another way.
async fn run_tools(
    ctx: &CallCtx,
    toolbox: &Toolbox,
    calls: &[ToolCall],
    citations: &mut Citations,
) -> Result<Vec<Message>, CallError> {
    for call in calls {
        emit::tool_call(ctx, call, toolbox.method(&call.name)).await?;
    }
    let mut messages = Vec::with_capacity(calls.len());
    for (call, mut outcome) in calls.iter().zip(toolbox.run(ctx, calls).await) {
        emit::tool_result(ctx, call, &outcome).await?;
        if let Ok(value) = &mut outcome {
            citations.number(value);
        }
        let content = outcome.unwrap_or_else(|error| failure(&error)).to_string();
        messages.push(Message::Tool {
            tool_call_id: call.id.clone(),
            content,
        });
    }
    Ok(messages)
}

fn failure(error: &CallError) -> Value {
    json!({ "error": error.message, "code": error.code, "hint": error.hint_text() })
}
