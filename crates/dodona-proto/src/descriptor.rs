//! What can be called.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{MethodName, Scope};

/// Everything a surface needs to offer a method: made once, at activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MethodDescriptor {
    /// `plugin.verb`.
    pub name: MethodName,
    /// What it does, for people and models.
    pub description: String,
    /// One result, or many items.
    pub kind: MethodKind,
    /// Whether it changes anything.
    pub mutation: Mutation,
    /// What the caller must have been granted. Without one the method cannot be reached from
    /// outside, only by other plugins.
    pub scope: Option<Scope>,
    /// Present when agents may use it.
    pub tool: Option<ToolMark>,
    /// How long it may take where the caller sets no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// JSON Schema of the parameters; its root is an object.
    pub params: Value,
    /// JSON Schema of the result, or of a streaming method's items.
    pub result: Value,
    /// SHA-256 of both schemas in canonical form, in hex.
    pub schema_hash: String,
}

/// How a method answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodKind {
    /// One result.
    Unary,
    /// Items as they come.
    Streaming,
}

/// Whether a method changes anything. Calls of mutating ones are journaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mutation {
    /// It only looks.
    Reads,
    /// It changes something.
    Mutates,
}

/// Says that agents may use a method, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMark {
    /// Where it belongs.
    pub category: ToolCategory,
    /// Which agents are offered it, by name.
    #[doc(alias = "agent_scope")]
    pub agents: Vec<String>,
    /// Whether a person must agree to each call.
    pub approval: Approval,
}

/// Where a tool belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCategory {
    /// Notes.
    Vault,
    /// Threads.
    Thread,
    /// Source code.
    Code,
    /// The web.
    Web,
    /// The agent itself.
    Meta,
    /// Something outside the program: a script, a server.
    External,
}

/// Whether a person must agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// No.
    #[default]
    Never,
    /// To a call that an agent makes, or that is made below one: it changes something, or leaves
    /// the machine. Whoever calls it directly has decided that already.
    Agents,
    /// To each call.
    Always,
}
