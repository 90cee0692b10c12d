//! A request of the Responses protocol.

use dodona_proto::Message;
use serde::Serialize;
use serde_json::{Value, json};

use super::Responses;
use crate::arguments;
use crate::model::{ModelRequest, ReasoningEffort, ToolOffer};
use crate::wire;

/// The parts that stay the same over a conversation come first.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Item<'a>>,
    stream: bool,
    /// The conversation is kept here. The provider stores nothing.
    store: bool,
    /// Without stored state the provider returns its reasoning encrypted, to be sent back.
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: ReasoningEffort,
    summary: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas require every parameter.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Message {
        role: &'static str,
        content: &'a str,
    },
    Call {
        r#type: &'static str,
        call_id: &'a str,
        name: &'a str,
        /// JSON as text.
        arguments: String,
    },
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: &'a str,
    },
    /// A reasoning item as the provider sent it.
    Reasoning(Value),
}

pub(super) fn body(wire: &Responses, request: &ModelRequest) -> Vec<u8> {
    let options = wire::options(&request.options, &wire.options);
    let body = Body {
        model: &wire.model,
        instructions: &request.system,
        tools: request.tools.iter().map(tool).collect(),
        input: request
            .messages
            .iter()
            .flat_map(|message| items(wire, message))
            .collect(),
        stream: true,
        store: false,
        include: ["reasoning.encrypted_content"],
        max_output_tokens: options.max_output_tokens,
        temperature: options.temperature,
        reasoning: options.reasoning.map(|effort| Reasoning {
            effort,
            summary: "auto",
        }),
        // The tools stay in the request, so that the provider's cache recognises it.
        tool_choice: (options.without_tools && !request.tools.is_empty()).then_some("none"),
    };
    serde_json::to_vec(&body).expect("texts, numbers and JSON values are JSON")
}

fn tool(offer: &ToolOffer) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &offer.name,
        description: &offer.description,
        parameters: &offer.parameters,
        strict: false,
    }
}

fn items<'a>(wire: &Responses, message: &'a Message) -> Vec<Item<'a>> {
    match message {
        Message::User { content } => vec![Item::Message {
            role: "user",
            content,
        }],
        Message::Tool {
            tool_call_id,
            content,
        } => vec![Item::Output {
            r#type: "function_call_output",
            call_id: tool_call_id,
            output: content,
        }],
        Message::Assistant {
            content,
            tool_calls,
            opaque,
        } => {
            let mut items: Vec<Item<'_>> = reasoning_items(opaque.as_ref(), &wire.model)
                .into_iter()
                .map(Item::Reasoning)
                .collect();
            if !content.is_empty() {
                items.push(Item::Message {
                    role: "assistant",
                    content,
                });
            }
            items.extend(tool_calls.iter().map(|call| Item::Call {
                r#type: "function_call",
                call_id: &call.id,
                name: &call.name,
                arguments: arguments::as_object(&call.arguments).to_string(),
            }));
            items
        }
    }
}

/// The reasoning items that a message keeps for this model.
fn reasoning_items(opaque: Option<&Value>, model: &str) -> Vec<Value> {
    let kept = opaque.filter(|opaque| opaque["model"] == model);
    let items = kept.and_then(|opaque| opaque["responses"].as_array());
    items.cloned().unwrap_or_default()
}

/// The form in which a message keeps reasoning items.
pub(super) fn keep_reasoning(items: Vec<Value>, model: &str) -> Option<Value> {
    (!items.is_empty()).then(|| json!({ "model": model, "responses": items }))
}
