//! The plugin `agent`: it asks a model, runs the tools the model wants, and cites what it found.
//!
//! Start from [`plugins`] or [`AgentPlugin`]. `agent.chat` is a loop of named steps (`chat`): wait for the
//! conversation's turn, assemble what the model sees, ask it, account for it, run what it wants,
//! until it answers; every step is stored before the next. What is kept of a conversation is in
//! [`conversation`]; how a model is told to behave is a file in `prompts/`.
//!
//! # What it does not do
//!
//! It searches nothing and reads no file of a project: that is what tools are for. It speaks no
//! provider's protocol: that is `dodona-llm`. Text that looks like a tool call is text.

mod agent;
mod brought;
mod chat;
pub mod conversation;
mod definition;
mod delegate;
mod finder;
mod keeper;
mod methods;
mod notify;
mod prompt;
mod recovery;
mod replay;
mod trace;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    BoxFuture, CallCtx, CallError, Contribution, Emitter, NoParams, Plugin, PluginContext, plugin,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use agent::Agent;
pub use agent::AgentOptions;
pub use methods::models::{LocalServer, ModelSettings, SetModelParams, SetModelResult};

/// The database of this crate and its newest schema version.
pub const SCHEMAS: &[(&str, usize)] = &[("plugins/agent/agent.db", conversation::MIGRATIONS.len())];
use chat::{AgentResponse, ChatParams, PromptParams, PromptShown};
use conversation::{Conversations, Owner, QueryId, SessionEnding};
use delegate::{DelegateParams, DelegateResult};
use finder::{Toolboxes, ToolsPlugin};
use keeper::Keeper;
use methods::ContextMethods;
use methods::agents::{
    self, AgentParams, DefineParams, DefineResult, DeleteResult, DescribeResult, ListParams,
    ListResult,
};
use methods::compact::{CompactParams, CompactResult};
use methods::models::{LocalModelsResult, ModelsResult};
use methods::pin::{PinParams, PinResult};
use methods::render::with_renderer;
use replay::{
    MessagesParams, MessagesResult, ReplayParams, ReplayResult, RequestParams, RequestResult,
};
use trace::{TraceParams, TraceResult};

/// The plugin `agent` alone: it tells models of all tools there are.
#[derive(Default)]
pub struct AgentPlugin {
    options: AgentOptions,
    toolboxes: Toolboxes,
    /// There while it is active.
    keeper: Mutex<Option<Arc<Keeper>>>,
    agent: Mutex<Weak<Agent>>,
}

impl AgentPlugin {
    /// The plugin with these models, prompts and bounds.
    pub fn new(options: AgentOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

/// The plugins `agent` and `tools`, by which agents find tools among many.
pub fn plugins(options: AgentOptions) -> Vec<Arc<dyn Plugin>> {
    let agent = AgentPlugin::new(options);
    let tools = ToolsPlugin {
        toolboxes: agent.toolboxes.clone(),
    };
    vec![Arc::new(agent), Arc::new(tools)]
}

impl AgentPlugin {
    fn keeper(&self) -> MutexGuard<'_, Option<Arc<Keeper>>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agent(&self) -> MutexGuard<'_, Weak<Agent>> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for AgentPlugin {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn version(&self) -> &'static str {
        "0.2.0"
    }

    fn description(&self) -> &'static str {
        "Answers questions with citations, and keeps conversations."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let conversations =
                Conversations::open(ctx.db.clone()).with_history(Arc::clone(&ctx.history));
            let keeper = Keeper::new(
                conversations.clone(),
                Arc::clone(&ctx.system.event_bus),
                Arc::clone(&ctx.hooks),
            );
            keeper.watch(self.options.session_idle);
            let agent = Arc::new(Agent::new(
                self.options.clone(),
                conversations.clone(),
                self.toolboxes.clone(),
                &ctx,
            ));
            let contexts = Arc::new(ContextMethods {
                agent: Arc::downgrade(&agent),
                conversations,
                keeper: Arc::clone(&keeper),
                redactor: ctx.redactor.clone(),
            });
            *self.keeper() = Some(keeper);
            *self.agent() = Arc::downgrade(&agent);
            Ok(Contribution::new()
                .methods(agent.plugin_methods()?.into_iter().map(with_renderer))
                .methods(contexts.plugin_methods()?.into_iter().map(with_renderer))
                .migrations(conversation::MIGRATIONS))
        })
    }

    fn recover(&self) -> BoxFuture<'_, ()> {
        let agent = self.agent().upgrade();
        Box::pin(async move {
            if let Some(agent) = agent {
                recovery::reconcile(&agent).await;
            }
        })
    }

    fn before_stop(&self) -> BoxFuture<'_, ()> {
        let keeper = self.keeper().clone();
        Box::pin(async {
            if let Some(keeper) = keeper {
                keeper.end(SessionEnding::All).await;
            }
        })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        self.keeper().take();
        Box::pin(async {})
    }
}

#[derive(Deserialize, JsonSchema)]
struct SteerParams {
    /// The message.
    #[schemars(length(min = 1, max = 65536))]
    message: String,
    /// The conversation, by id or name. Default: the default conversation.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Steered {
    /// The running query.
    query_id: QueryId,
}

#[plugin(name = "agent")]
impl Agent {
    /// Answer a question about the project with citations, as the agent `agent_id`.
    ///
    /// `agent_id` is the name of an agent from `agent.list` and defaults to `oracle`. Emits `TextDelta`,
    /// `ReasoningDelta`, `ToolCallDelta`, `ToolCall`, `ToolResult`, `Notification`, `Usage` and
    /// `Source` items as they come, and an `AgentResponse` last. Questions in one conversation
    /// wait for each other.
    #[method(scope = "agent:chat")]
    async fn chat(
        &self,
        ctx: &CallCtx,
        p: ChatParams,
        out: Emitter<AgentResponse>,
    ) -> Result<(), CallError> {
        let response = chat::answer(self, ctx, p).await?;
        let limit = response.limit.clone();
        out.send_last(response).await?;
        match limit {
            Some(limit) => Err(limit.into_error()),
            None => Ok(()),
        }
    }

    /// Send a message to the query that is running in a conversation. The model reads it with its
    /// next request. Returns the id of the query.
    #[method(scope = "agent:chat", mutates)]
    async fn steer(&self, ctx: &CallCtx, p: SteerParams) -> Result<Steered, CallError> {
        let owner = Owner::of(ctx)?;
        let counter = chat::counter(&self.options.models.default_model());
        let query_id = self
            .conversations
            .steer(&owner, p.context_id.as_deref(), p.message, &counter)
            .await?;
        Ok(Steered { query_id })
    }

    /// Shortens a conversation now: all but its last turns become a summary; the originals stay.
    #[method(scope = "agent:write", mutates)]
    async fn compact(&self, ctx: &CallCtx, p: CompactParams) -> Result<CompactResult, CallError> {
        methods::compact::compact(self, ctx, p).await
    }

    /// Pins a text in a conversation: a model is shown it word for word from now on, however often
    /// the conversation is shortened. Or releases it again.
    #[method(scope = "agent:write", mutates)]
    async fn pin(&self, ctx: &CallCtx, p: PinParams) -> Result<PinResult, CallError> {
        methods::pin::pin(self, ctx, p).await
    }

    /// Give a task to another agent, which works on it with its own tools and reports. Several at
    /// once run in parallel.
    #[method(scope = "agent:chat", tool(category = "meta", agents = ["*"]), timeout_ms = 1_800_000)]
    async fn delegate(
        &self,
        ctx: &CallCtx,
        p: DelegateParams,
    ) -> Result<DelegateResult, CallError> {
        delegate::delegate(self, ctx, p).await
    }

    /// Lists the models that `agent.chat` can be told to ask.
    #[method(scope = "agent:read")]
    async fn models(&self, _ctx: &CallCtx, _p: NoParams) -> Result<ModelsResult, CallError> {
        Ok(methods::models::list(&self.options.models))
    }

    /// Test a model and store it in the settings of this server. It is used from the next query on.
    /// Nothing is stored if the model does not answer.
    #[method(scope = "hub:admin", mutates, timeout_ms = 120_000)]
    async fn set_model(
        &self,
        _ctx: &CallCtx,
        p: SetModelParams,
    ) -> Result<SetModelResult, CallError> {
        methods::models::set(self, p).await
    }

    /// Find model servers on this machine, such as Ollama, with the models they have.
    #[method(scope = "hub:admin")]
    async fn local_models(
        &self,
        _ctx: &CallCtx,
        _p: NoParams,
    ) -> Result<LocalModelsResult, CallError> {
        methods::models::local(self).await
    }

    /// List the agents that `agent.chat` can address and `agent.delegate` can delegate to, with
    /// their tools, and the problems of their definitions.
    #[method(scope = "agent:read")]
    async fn list(&self, ctx: &CallCtx, p: ListParams) -> Result<ListResult, CallError> {
        Ok(agents::list(self, ctx, p).await)
    }

    /// Show one agent with its prompt.
    #[method(scope = "agent:read")]
    async fn describe(&self, ctx: &CallCtx, p: AgentParams) -> Result<DescribeResult, CallError> {
        agents::describe(self, ctx, p).await
    }

    /// Define an agent in the configuration of this server, whole or not at all.
    ///
    /// The definition is checked first: unknown tools and models, tools out of scope and a prompt
    /// that is not a valid template are errors, and nothing is written. It takes effect with the next
    /// query.
    #[method(scope = "agent:admin", mutates)]
    async fn define(&self, ctx: &CallCtx, p: DefineParams) -> Result<DefineResult, CallError> {
        agents::define(self, ctx, p).await
    }

    /// Delete an agent that was defined in the configuration of this server. Its conversations stay
    /// readable. A bundled agent of the same name is in use again.
    #[method(scope = "agent:admin", mutates)]
    async fn delete(&self, _ctx: &CallCtx, p: AgentParams) -> Result<DeleteResult, CallError> {
        agents::delete(self, p).await
    }

    /// Tells how a query went: its requests, its tools with their times, what was journaled of it
    /// and what plugins did.
    #[method(scope = "agent:read")]
    async fn trace(&self, ctx: &CallCtx, p: TraceParams) -> Result<TraceResult, CallError> {
        trace::trace(self, ctx, p).await
    }

    /// Makes the requests of a query again, against what was recorded of it, and names the first
    /// that is not as it was. No model is asked and no tool is run.
    #[method(scope = "agent:read")]
    async fn replay(&self, ctx: &CallCtx, p: ReplayParams) -> Result<ReplayResult, CallError> {
        replay::replay(self, ctx, p).await
    }

    /// Tells what a model was sent of the conversation in each request of a query, as rules saw it.
    #[method(scope = "agent:read")]
    async fn messages(
        &self,
        ctx: &CallCtx,
        p: MessagesParams,
    ) -> Result<MessagesResult, CallError> {
        replay::messages(self, ctx, p).await
    }

    /// Show one request of a query: system prompt, messages and tools as the model was sent them, and its
    /// response. Secrets are redacted.
    #[method(scope = "agent:read")]
    async fn request(&self, ctx: &CallCtx, p: RequestParams) -> Result<RequestResult, CallError> {
        replay::request(self, ctx, p).await
    }

    /// Shows exactly what a model would be sent if a question were asked now.
    #[method(scope = "agent:read")]
    async fn prompt(&self, ctx: &CallCtx, p: PromptParams) -> Result<PromptShown, CallError> {
        chat::show_prompt(self, ctx, p).await
    }
}
