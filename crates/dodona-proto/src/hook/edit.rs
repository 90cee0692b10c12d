//! What plugins may change.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Message, MethodName, ToolCall};

use super::payload::{Passage, PreloadRequest};

/// What an observer may change: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoEdit {}

/// Replaces what will be looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreloadEdit {
    /// All of it, in this order.
    pub requests: Vec<PreloadRequest>,
}

/// Replaces what was looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreloadedEdit {
    /// All of it, in this order.
    pub passages: Vec<Passage>,
}

/// Changes a prompt. To make it empty takes a [`PromptEdit::Replace`]: an absent value keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptEdit {
    /// Adds a paragraph at its end.
    Append(String),
    /// Puts another in its place.
    Replace(String),
}

/// Adds a tool to those a model is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolAddition {
    /// A method that is marked as a tool, for whichever agent.
    pub method: MethodName,
    /// What the model is told about it, in place of the method's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Changes a request to a model. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelCallEdit {
    /// Puts these in place of the conversation, in this request only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Adds these at its end, in this request only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<Message>,
    /// Offers only these tools. What is not offered cannot be added here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How the model should answer.
    #[serde(skip_serializing_if = "ModelOptionsEdit::is_empty")]
    pub options: ModelOptionsEdit,
}

/// How a model should answer. What is absent is as the model's configuration has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelOptionsEdit {
    /// From 0, the same each time, to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The most tokens it may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl ModelOptionsEdit {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes what a model said, before it is stored and acted upon. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelResponseEdit {
    /// Another text. What was streamed already has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Other tools to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<ToolCall>>,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Go on with these parameters instead.
    Modify(Value),
    /// Do not run it; the text says why and goes to the caller.
    Deny(String),
    /// A person must agree first; the text says to what.
    Ask(String),
    /// Do not run it; this is its result.
    Answer(Value),
}

/// Puts another result in the place of a tool's. An error cannot be made a success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultEdit {
    /// The result.
    pub result: Value,
}

/// A path of the server at which a method answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerRoute {
    /// Below `/plugins/<name>/`, without that.
    pub path: String,
    /// What is called, with the request's body or query as its parameters.
    pub method: MethodName,
}

/// Changes how a conversation is shortened. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompactEdit {
    /// Further texts that must survive word for word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<String>,
    /// Who makes the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarizer: Option<String>,
}
