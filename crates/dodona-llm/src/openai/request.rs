//! A request to chat completions.

use dodona_proto::{Message, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

use super::{CacheField, ChatCompletions, LimitField, reasoning};
use crate::arguments;
use crate::model::{ModelRequest, ReasoningEffort, ToolOffer};
use crate::wire;

/// What stays the same over a conversation comes first.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Said<'a>>,
    stream: bool,
    stream_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Said<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Null beside tool calls without text.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Called<'a>>,
        #[serde(flatten)]
        reasoning: reasoning::Kept,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct Called<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    /// JSON as text.
    arguments: String,
}

pub(super) fn body(wire: &ChatCompletions, request: &ModelRequest) -> Vec<u8> {
    let options = wire::options(&request.options, &wire.options);
    let limit = |field| match wire.limit_field == field {
        true => options.max_output_tokens,
        false => None,
    };
    let body = Body {
        model: &wire.model,
        // Left out, because not every compatible server knows `tool_choice`.
        tools: match options.without_tools {
            true => Vec::new(),
            false => request.tools.iter().map(tool).collect(),
        },
        messages: messages(wire, request),
        stream: true,
        stream_options: json!({ "include_usage": true }),
        max_tokens: limit(LimitField::MaxTokens),
        max_completion_tokens: limit(LimitField::MaxCompletionTokens),
        temperature: options.temperature,
        reasoning_effort: options.reasoning,
        cache_control: match wire.cache_field {
            CacheField::Absent => None,
            CacheField::Ephemeral => Some(json!({ "type": "ephemeral" })),
        },
    };
    serde_json::to_vec(&body).expect("texts, numbers and JSON values are JSON")
}

fn tool(offer: &ToolOffer) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: Function {
            name: &offer.name,
            description: &offer.description,
            parameters: &offer.parameters,
        },
    }
}

fn messages<'a>(wire: &ChatCompletions, request: &'a ModelRequest) -> Vec<Said<'a>> {
    let system = match request.system.as_str() {
        "" => None,
        content => Some(Said::System { content }),
    };
    let said = request
        .messages
        .iter()
        .filter_map(|message| said(wire, message));
    system.into_iter().chain(said).collect()
}

/// An answer that holds nothing is left out: no provider takes it back.
fn said<'a>(wire: &ChatCompletions, message: &'a Message) -> Option<Said<'a>> {
    Some(match message {
        Message::User { content } => Said::User { content },
        Message::Tool {
            tool_call_id,
            content,
        } => Said::Tool {
            tool_call_id,
            content,
        },
        Message::Assistant {
            content,
            tool_calls,
            ..
        } if content.is_empty() && tool_calls.is_empty() => return None,
        Message::Assistant {
            content,
            tool_calls,
            opaque,
        } => Said::Assistant {
            content: (!content.is_empty()).then_some(content),
            tool_calls: tool_calls.iter().map(called).collect(),
            reasoning: reasoning::Kept::of(opaque.as_ref(), &wire.model),
        },
    })
}

fn called(call: &ToolCall) -> Called<'_> {
    Called {
        id: &call.id,
        r#type: "function",
        function: CalledFunction {
            name: &call.name,
            arguments: arguments::as_object(&call.arguments).to_string(),
        },
    }
}
