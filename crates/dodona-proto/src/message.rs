//! What is said between an agent and a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user asked.
    User {
        /// The question.
        content: String,
    },
    /// What the model said, and the tools it wants.
    Assistant {
        /// The text.
        content: String,
        /// The tools.
        tool_calls: Vec<ToolCall>,
        /// What the provider wants back unchanged with this message, such as signed reasoning.
        /// Only the model that sent it reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// What a tool answered.
    Tool {
        /// Which call it answers.
        tool_call_id: String,
        /// The answer, or what went wrong, as JSON text.
        content: String,
    },
}

/// A tool that a model wants to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The model's own id for it.
    pub id: String,
    /// The tool's name on the model's side, such as `vault_search`.
    pub name: String,
    /// Its parameters; a string that holds what was sent where that is no JSON.
    pub arguments: Value,
}
