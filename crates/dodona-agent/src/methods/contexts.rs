//! `agent.contexts`, `agent.create` and `agent.close`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextMethods, named};
use crate::chat::Role;
use crate::conversation::{
    ContextId, ContextSummary, Conversations, DEFAULT_AGENT, DEFAULT_TOKEN_BUDGET, NewContext,
    Owner, Which,
};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ContextsParams {
    /// Also closed conversations, and those of delegated tasks.
    #[serde(default)]
    all: bool,
    /// Only conversations of this agent.
    #[schemars(length(min = 1, max = 50))]
    agent_id: Option<String>,
    /// How many at most.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn limit() -> u32 {
    100
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ContextsResult {
    /// The conversations, the latest first.
    contexts: Vec<ContextSummary>,
}

pub(super) async fn list(
    conversations: &Conversations,
    owner: &Owner,
    p: ContextsParams,
) -> Result<ContextsResult, CallError> {
    let which = if p.all { Which::All } else { Which::Open };
    let agent = p.agent_id.as_deref();
    let contexts = conversations.list_of(owner, which, agent, p.limit).await?;
    Ok(ContextsResult { contexts })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateParams {
    /// A name that no open conversation of the project has; it can be used instead of the id.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// How many tokens of it a model is shown at most.
    #[serde(default = "budget")]
    #[schemars(range(min = 4000, max = 128_000))]
    token_budget: u64,
    /// The agent that answers in it, by its name in `agent.list`.
    #[serde(default = "default_agent")]
    #[schemars(length(min = 1, max = 50))]
    agent_id: String,
}

fn budget() -> u64 {
    DEFAULT_TOKEN_BUDGET
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CreateResult {
    /// Its id.
    context_id: ContextId,
    /// Its name.
    name: Option<String>,
    /// How many tokens of it a model is shown at most.
    token_budget: u64,
    /// The agent that answers in it.
    agent_id: String,
}

pub(super) async fn create(
    methods: &ContextMethods,
    ctx: &CallCtx,
    p: CreateParams,
) -> Result<CreateResult, CallError> {
    if let Some(agent) = methods.agent.upgrade() {
        // A conversation of an agent that does not exist could never be continued.
        Role::find(&agent, ctx, &p.agent_id).await?;
    }
    let new = NewContext {
        token_budget: p.token_budget,
        agent_id: p.agent_id,
        ..NewContext::named(p.name.as_deref())
    };
    let context = methods.conversations.create(&Owner::of(ctx)?, new).await?;
    Ok(CreateResult {
        context_id: context.id,
        name: context.name,
        token_budget: context.token_budget,
        agent_id: context.agent_id,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CloseParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Closed {
    /// Which one was closed.
    context_id: ContextId,
}

pub(super) async fn close(
    conversations: &Conversations,
    owner: &Owner,
    p: CloseParams,
) -> Result<Closed, CallError> {
    let context_id = conversations
        .close(owner, named(p.context_id.as_deref()))
        .await?;
    Ok(Closed { context_id })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RenameParams {
    /// The conversation, by id or name.
    context_id: String,
    /// Its new name.
    #[schemars(length(min = 1, max = 64))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Renamed {
    /// The conversation.
    context_id: ContextId,
    /// Its name.
    name: String,
}

pub(super) async fn rename(
    conversations: &Conversations,
    owner: &Owner,
    p: RenameParams,
) -> Result<Renamed, CallError> {
    let name = p.name.trim().to_owned();
    let context_id = conversations.rename(owner, &p.context_id, &name).await?;
    Ok(Renamed { context_id, name })
}
