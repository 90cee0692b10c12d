//! What plugins are shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CallId, Message, MethodName, PluginName, PluginPath, ProjectId, QuerySnapshot, Source, Surface,
    ToolCall, UserId,
};

use super::edit::{ModelOptionsEdit, ServerRoute, ToolAddition};

/// A conversation that a query goes on with, or begins.
#[derive(Debug, Clone, Serialize)]
pub struct SessionResolved {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Whether a session begins with this query.
    pub is_new: bool,
    /// The model that will be asked.
    pub model: String,
}

/// A question, before anything is done about it.
#[derive(Debug, Clone, Serialize)]
pub struct QueryReceived {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// The question.
    pub question: String,
}

/// What is about to be looked up before the model is asked.
#[derive(Debug, Clone, Serialize)]
pub struct Preload {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// The question.
    pub question: String,
    /// What to call, in this order.
    pub requests: Vec<PreloadRequest>,
}

/// One thing to look up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreloadRequest {
    /// A method that reads and answers with passages, such as `search.query`.
    pub method: MethodName,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// What was looked up.
#[derive(Debug, Clone, Serialize)]
pub struct Preloaded {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// The question.
    pub question: String,
    /// What the model will be shown with it.
    pub passages: Vec<Passage>,
}

/// A piece of the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Where it is from; none for what a plugin made.
    #[serde(default)]
    pub source: Option<Source>,
    /// What it says.
    pub text: String,
}

/// A system prompt in the making.
#[derive(Debug, Clone, Serialize)]
pub struct SystemPrompt {
    /// Of which conversation; none where nothing has been said yet.
    pub context_id: Option<String>,
    /// For which query, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_id: Option<String>,
    /// Whose.
    pub user: UserId,
    /// About which project.
    pub project: Option<ProjectId>,
    /// The prompt so far.
    pub prompt: String,
}

/// The tools a model will be offered.
#[derive(Debug, Clone, Serialize)]
pub struct ToolTable {
    /// For which agent.
    pub agent: String,
    /// Who is asking.
    pub user: UserId,
    /// About which project.
    pub project: Option<ProjectId>,
    /// Those that are there already.
    pub methods: Vec<MethodName>,
    /// What plugins have added.
    pub added: Vec<ToolAddition>,
}

/// A request that is about to be sent to a model.
#[derive(Debug, Clone, Serialize)]
pub struct ModelCall {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Which model.
    pub model: String,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools, by their names on the model's side.
    pub tools: Vec<String>,
    /// How the model should answer.
    pub options: ModelOptionsEdit,
}

/// What a model said.
#[derive(Debug, Clone, Serialize)]
pub struct ModelResponse {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Which model.
    pub model: String,
    /// The text.
    pub text: String,
    /// The tools it wants.
    pub calls: Vec<ToolCall>,
}

/// A tool that is about to run.
#[derive(Debug, Clone, Serialize)]
pub struct ToolPending {
    /// Which call.
    pub call_id: CallId,
    /// The names that led to it.
    pub path: PluginPath,
    /// What runs.
    pub method: MethodName,
    /// The same on a model's side.
    pub tool_name: String,
    /// Its parameters, with what earlier gates changed.
    pub arguments: Value,
    /// Who is asking.
    pub user: UserId,
    /// By which way they came.
    pub surface: Surface,
    /// About which project.
    pub project: Option<ProjectId>,
    /// How the query stands; none outside of one.
    pub snapshot: Option<Arc<QuerySnapshot>>,
    /// A question for a person that a gate has asked, and whose it is.
    pub ask: Option<(PluginName, String)>,
    /// A result that a gate gave in the tool's place, and whose it is.
    pub answer: Option<(PluginName, Value)>,
    /// A refusal, and whose it is.
    pub denied: Option<(PluginName, String)>,
}

/// How a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEnding {
    /// With a result.
    Success,
    /// With an error.
    Error,
    /// Out of time.
    Timeout,
    /// Kept from running.
    Denied,
    /// Stopped.
    Cancelled,
}

/// A tool that has run, or was kept from it.
#[derive(Debug, Clone, Serialize)]
pub struct ToolEnded {
    /// Which call.
    pub call_id: CallId,
    /// The names that led to it.
    pub path: PluginPath,
    /// What ran.
    pub method: MethodName,
    /// The same on a model's side.
    pub tool_name: String,
    /// Its parameters as they were used.
    pub arguments: Value,
    /// Who asked.
    pub user: UserId,
    /// By which way they came.
    pub surface: Surface,
    /// About which project.
    pub project: Option<ProjectId>,
    /// How the query stands; none outside of one.
    pub snapshot: Option<Arc<QuerySnapshot>>,
    /// How it ended.
    pub ending: ToolEnding,
    /// Whether a gate answered in its place.
    pub answered: bool,
    /// Its result; null where there is none.
    pub result: Value,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: f64,
}

/// A turn that is over.
#[derive(Debug, Clone, Serialize)]
pub struct TurnCompleted {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Whether the query ended with it.
    pub is_last: bool,
    /// The tools that ran in it.
    pub tool_calls: usize,
    /// The answer, where there is one.
    pub answer: Option<String>,
    /// Why the query ended without one.
    pub error: Option<String>,
}

/// A conversation that is over.
#[derive(Debug, Clone, Serialize)]
pub struct SessionEnded {
    /// Which.
    pub context_id: String,
    /// Whose.
    pub user: UserId,
    /// About which project.
    pub project: Option<ProjectId>,
    /// Why.
    pub reason: SessionEnd,
    /// The turns it had.
    pub turns: u64,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// Somebody closed the conversation.
    Closed,
    /// Nothing was said for a while.
    Idle,
    /// The server stopped.
    Shutdown,
    /// The server was killed; noticed at its next start.
    Crashed,
}

/// The routes a server will have beside its own.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RouteTable {
    /// What plugins have added, and who did.
    pub routes: Vec<(PluginName, ServerRoute)>,
}

/// A conversation that is about to be shortened.
#[derive(Debug, Clone, Serialize)]
pub struct Compacting {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Texts that must survive word for word.
    pub pinned: Vec<String>,
    /// Who makes the summary: `extractive`, or a model's name.
    pub summarizer: String,
}

/// A conversation that was shortened.
#[derive(Debug, Clone, Serialize)]
pub struct Compacted {
    /// How the query stands.
    pub snapshot: Arc<QuerySnapshot>,
    /// Tokens before.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
}
