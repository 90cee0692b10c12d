//! A request to messages.

use std::borrow::Cow;

use dodona_proto::{Message, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Messages;
use super::blocks::{self, KeptBlock};
use crate::arguments;
use crate::model::{ModelRequest, ReasoningEffort, ToolOffer};
use crate::wire;

/// The longest answer where nothing else is said; the protocol wants a number.
const MAX_TOKENS: u32 = 8192;

/// What stays the same over a conversation comes first, as the provider reads it.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<System<'a>>,
    messages: Vec<Turn<'a>>,
    /// The conversation's own place in the cache: it moves along by itself, and no message has
    /// to be written differently for it.
    cache_control: CacheControl,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl {
    r#type: "ephemeral",
};

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct System<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
}

pub(super) fn body(wire: &Messages, request: &ModelRequest) -> Vec<u8> {
    let options = wire::options(&request.options, &wire.options);
    let has_system = !request.system.is_empty();
    let mut tools: Vec<Tool> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut().filter(|_| !has_system) {
        last.cache_control = Some(EPHEMERAL);
    }
    let system = System {
        r#type: "text",
        text: &request.system,
        cache_control: EPHEMERAL,
    };
    let (thinking, output_config) = reasoning(wire.reasoning_budget, options.reasoning);
    let body = Body {
        model: &wire.model,
        max_tokens: options.max_output_tokens.unwrap_or(MAX_TOKENS),
        tools,
        system: has_system.then_some(system).into_iter().collect(),
        messages: turns(wire, &request.messages),
        cache_control: EPHEMERAL,
        stream: true,
        temperature: options.temperature,
        // The tools stay in the request: the API requires them as long as messages contain calls.
        tool_choice: (options.without_tools && !request.tools.is_empty())
            .then(|| json!({ "type": "none" })),
        thinking,
        output_config,
    };
    serde_json::to_vec(&body).expect("texts, numbers and JSON values are JSON")
}

/// Older models take a number of tokens, newer ones a degree.
fn reasoning(
    budget: Option<u32>,
    effort: Option<ReasoningEffort>,
) -> (Option<Value>, Option<Value>) {
    match (budget, effort) {
        (Some(budget), _) => {
            let thinking = json!({ "type": "enabled", "budget_tokens": budget });
            (Some(thinking), None)
        }
        (None, Some(effort)) => (
            Some(json!({ "type": "adaptive" })),
            Some(json!({ "effort": effort })),
        ),
        (None, None) => (None, None),
    }
}

fn tool(offer: &ToolOffer) -> Tool<'_> {
    Tool {
        name: &offer.name,
        description: &offer.description,
        input_schema: &offer.parameters,
        cache_control: None,
    }
}

/// Messages by turns: the provider wants user and assistant to alternate, results of tools come
/// from the user, and nothing may be empty.
fn turns<'a>(wire: &Messages, messages: &'a [Message]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let (role, content) = blocks_of(wire, message);
        if content.is_empty() {
            continue;
        }
        match turns.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.extend(content),
            None => turns.push(Turn { role, content }),
        }
    }
    turns
}

fn blocks_of<'a>(wire: &Messages, message: &'a Message) -> (Role, Vec<Block<'a>>) {
    match message {
        Message::User { content } => (Role::User, text(content).into_iter().collect()),
        Message::Tool {
            tool_call_id,
            content,
        } => {
            let result = Block::ToolResult {
                tool_use_id: id(tool_call_id),
                content,
            };
            (Role::User, vec![result])
        }
        Message::Assistant {
            content,
            tool_calls,
            opaque,
        } => {
            let order = blocks::of(content, tool_calls, opaque.as_ref(), &wire.model);
            let mut blocks = restored(order, content, tool_calls);
            // Reasoning alone is no answer, and not taken for one.
            blocks.retain(|_| !content.trim().is_empty() || !tool_calls.is_empty());
            (Role::Assistant, blocks)
        }
    }
}

fn restored<'a>(order: Vec<KeptBlock>, content: &'a str, calls: &'a [ToolCall]) -> Vec<Block<'a>> {
    let (mut rest, mut calls) = (content, calls.iter());
    let block = |kept| match kept {
        KeptBlock::Text { bytes } => {
            let (part, others) = rest.split_at(bytes);
            rest = others;
            text(part)
        }
        KeptBlock::ToolUse { .. } => calls.next().map(|call| Block::ToolUse {
            id: id(&call.id),
            name: &call.name,
            input: arguments::as_object(&call.arguments),
        }),
        KeptBlock::Thinking {
            thinking,
            signature,
        } => Some(Block::Thinking {
            thinking,
            signature,
        }),
        KeptBlock::RedactedThinking { data } => Some(Block::RedactedThinking { data }),
    };
    order.into_iter().filter_map(block).collect()
}

/// A text of nothing but space is refused like an empty one.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

/// Ids of other providers may hold what this one refuses. The hash keeps two of them apart that
/// differ only in that.
fn id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let hash = Sha256::digest(id.as_bytes());
    let replaced: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let suffix: String = hash
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Cow::Owned(format!("{replaced}-{suffix}"))
}
