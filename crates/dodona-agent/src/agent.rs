//! What the agent's methods share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Model, Models};
use dodona_plugin::{CallError, ErrorCode, EventBus, EventHistory, HookHost, PluginContext};

use crate::chat::{Delegations, Queue};
use crate::conversation::Conversations;
use crate::definition::Definitions;
use crate::prompt::Prompts;

/// What the agent is told by whoever starts it.
#[derive(Clone)]
pub struct AgentOptions {
    /// The models there are.
    pub models: Models,
    /// Where the user keeps prompts that replace the bundled ones.
    pub prompts: Option<PathBuf>,
    /// Where the user keeps definitions of agents that can be delegated to.
    pub agents: Option<PathBuf>,
    /// How many times a model is asked for one query.
    pub max_turns: u32,
    /// How many tokens of a new conversation a model is shown; as the data model says without.
    pub token_budget: Option<u64>,
    /// How long a tool may take that says nothing about it.
    pub tool_timeout: Duration,
    /// How many passages are looked up for a question before a model is asked.
    pub preload: u32,
    /// How many turns stay as they are when a conversation is shortened.
    pub keep_turns: u32,
    /// The model that summarizes what is folded then; put together from what was said without.
    pub summarizer: Option<String>,
    /// After how long without a word a session has ended.
    pub session_idle: Duration,
}

impl Default for AgentOptions {
    /// With the model that needs nothing.
    fn default() -> Self {
        Self {
            models: Models::default(),
            prompts: None,
            agents: None,
            max_turns: 30,
            token_budget: None,
            tool_timeout: Duration::from_secs(60),
            preload: 3,
            keep_turns: 4,
            summarizer: None,
            session_idle: Duration::from_secs(30 * 60),
        }
    }
}

/// The agent.
pub(crate) struct Agent {
    pub(crate) options: AgentOptions,
    pub(crate) conversations: Conversations,
    pub(crate) prompts: Prompts,
    pub(crate) definitions: Definitions,
    pub(crate) delegations: Delegations,
    pub(crate) queue: Queue,
    pub(crate) bus: Arc<dyn EventBus>,
    pub(crate) host: Arc<dyn HookHost>,
    pub(crate) history: Arc<dyn EventHistory>,
}

impl Agent {
    pub(crate) fn new(
        options: AgentOptions,
        conversations: Conversations,
        ctx: &PluginContext,
    ) -> Self {
        Self {
            prompts: Prompts::new(options.prompts.clone()),
            definitions: Definitions::new(options.agents.clone()),
            delegations: Delegations::default(),
            options,
            conversations,
            queue: Queue::default(),
            bus: Arc::clone(&ctx.bus),
            host: Arc::clone(&ctx.hooks),
            history: Arc::clone(&ctx.history),
        }
    }

    /// A model by its name, or the default one.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CallError> {
        let models = &self.options.models;
        let Some(name) = name else {
            return Ok(models.default_model());
        };
        models.get(name).ok_or_else(|| {
            let known: Vec<&str> = models.names().collect();
            CallError::new(
                ErrorCode::InvalidParams,
                format!("there is no model `{name}`"),
            )
            .hint(format!("there is {}", known.join(", ")))
        })
    }
}
