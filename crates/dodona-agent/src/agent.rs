//! What the agent's methods share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Model, Models};
use dodona_plugin::store::Redactor;
use dodona_plugin::{
    CallError, ErrorCode, EventBus, EventHistory, HookHost, PluginContext, TrustHost,
};

use crate::chat::{Delegations, Queue, ToolCounts};
use crate::conversation::{ContextId, Conversations};
use crate::definition::Definitions;
use crate::finder::Toolboxes;
use crate::methods::models::ModelSettings;
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
    /// Models that replace the `model_override` of definitions, by the name of the agent.
    pub agent_models: BTreeMap<String, String>,
    /// How many times a model is asked for one query.
    pub max_turns: u32,
    /// How many tokens of a new conversation a model is shown; as the data model says without.
    pub token_budget: Option<u64>,
    /// How long a tool may take that says nothing about it.
    pub tool_timeout: Duration,
    /// How many tools a model is told of at once; where there are more it is told of a few, and
    /// finds the others.
    pub tools_limit: usize,
    /// How many passages are looked up for a question before a model is asked.
    pub preload: u32,
    /// How many turns stay as they are when a conversation is shortened.
    pub keep_turns: u32,
    /// The model that summarizes what is folded then; put together from what was said without.
    pub summarizer: Option<String>,
    /// After how long without a word a session has ended.
    pub session_idle: Duration,
    /// Writes the settings of models. Without it, `agent.set_model` is refused.
    pub model_settings: Option<Arc<dyn ModelSettings>>,
}

impl Default for AgentOptions {
    /// With the model that needs nothing.
    fn default() -> Self {
        Self {
            models: Models::default(),
            prompts: None,
            agents: None,
            agent_models: BTreeMap::new(),
            max_turns: 30,
            token_budget: None,
            tool_timeout: Duration::from_secs(60),
            tools_limit: 12,
            preload: 3,
            keep_turns: 4,
            summarizer: None,
            session_idle: Duration::from_secs(30 * 60),
            model_settings: None,
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
    pub(crate) toolboxes: Toolboxes,
    pub(crate) tool_counts: ToolCounts,
    pub(crate) queue: Queue,
    pub(crate) bus: Arc<dyn EventBus>,
    pub(crate) host: Arc<dyn HookHost>,
    pub(crate) history: Arc<dyn EventHistory>,
    pub(crate) trust: Arc<dyn TrustHost>,
    pub(crate) redactor: Redactor,
}

impl Agent {
    pub(crate) fn new(
        options: AgentOptions,
        conversations: Conversations,
        toolboxes: Toolboxes,
        ctx: &PluginContext,
    ) -> Self {
        Self {
            prompts: Prompts::new(options.prompts.clone()),
            definitions: Definitions::new(options.agents.clone(), options.agent_models.clone()),
            delegations: Delegations::default(),
            toolboxes,
            tool_counts: ToolCounts::default(),
            options,
            conversations,
            queue: Queue::default(),
            bus: Arc::clone(&ctx.system.event_bus),
            host: Arc::clone(&ctx.hooks),
            history: Arc::clone(&ctx.history),
            trust: Arc::clone(&ctx.trust),
            redactor: ctx.redactor.clone(),
        }
    }

    /// Makes memories of what was said, while nobody waits for it. Whoever seeks before that is
    /// done does it himself.
    pub(crate) fn memorize_later(&self, context: &ContextId) {
        let (conversations, context) = (self.conversations.clone(), context.clone());
        tokio::spawn(async move {
            if let Err(error) = conversations.memorize(&context).await {
                tracing::debug!(%context, %error, "what was said is made a memory later");
            }
        });
    }

    /// A model by its name, or the default one.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CallError> {
        let models = &self.options.models;
        let Some(name) = name else {
            return Ok(models.default_model());
        };
        models.get(name).ok_or_else(|| {
            let known = models.names();
            CallError::new(
                ErrorCode::InvalidParams,
                format!("there is no model `{name}`"),
            )
            .hint(format!("there is {}", known.join(", ")))
        })
    }
}
