//! The plugin `agent`: it asks a model, runs the tools the model wants, and cites what it found.
//!
//! Start from [`AgentPlugin`]. `agent.chat` is a loop of named steps: offer tools, ask the
//! model, run what it wants, until it answers; then the sources it cites are checked against the
//! project.
//!
//! # What it does not do
//!
//! It searches nothing and reads no file: that is what tools are for. What it keeps of a
//! conversation, it keeps through [`conversation`].

mod chat;
mod cite;
pub mod conversation;
mod emit;
mod methods;
mod tools;
mod types;

use std::sync::Arc;

use dodona_llm::{Model, Offline};
use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Emitter, Plugin, PluginContext, plugin};

use conversation::Conversations;
use methods::ContextMethods;
use types::{AgentResponse, ChatParams};

/// The plugin.
pub struct AgentPlugin {
    model: Arc<dyn Model>,
}

impl Default for AgentPlugin {
    /// With the model that needs nothing.
    fn default() -> Self {
        Self {
            model: Arc::new(Offline),
        }
    }
}

impl Plugin for AgentPlugin {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn version(&self) -> &'static str {
        "0.1.0"
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let agent = Arc::new(Agent {
                model: Arc::clone(&self.model),
            });
            let contexts = Arc::new(ContextMethods {
                conversations: Conversations::open(ctx.db),
            });
            Ok(Contribution::new()
                .methods(agent.plugin_methods()?)
                .methods(contexts.plugin_methods()?)
                .migrations(conversation::MIGRATIONS))
        })
    }
}

struct Agent {
    model: Arc<dyn Model>,
}

#[plugin(name = "agent")]
impl Agent {
    /// Answers a question about the project, with citations.
    ///
    /// Emits `ToolCall`, `ToolResult`, `TextDelta` and `Source` items as they come, and an
    /// `AgentResponse` last.
    #[method(scope = "agent:chat")]
    async fn chat(
        &self,
        ctx: &CallCtx,
        p: ChatParams,
        out: Emitter<AgentResponse>,
    ) -> Result<(), CallError> {
        let response = chat::answer(ctx, self.model.as_ref(), p.message).await?;
        out.send(response).await
    }
}
