//! `agent.compact`.

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{ExchangeRange, QuerySnapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named;
use crate::agent::Agent;
use crate::chat::{self, Compactor, Shortened};
use crate::conversation::{ContextId, DEFAULT_AGENT, Owner};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CompactParams {
    /// Which conversation, by id or name; the default one without.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CompactResult {
    /// In which conversation.
    context_id: ContextId,
    /// Whether it is shorter now. One that has nothing beside its last turns stays as it is.
    compacted: bool,
    /// How many tokens a model was shown of it.
    before: u64,
    /// How many it is shown now.
    after: u64,
    /// The exchanges that a summary stands for now, by their places.
    folded: Option<ExchangeRange>,
    /// How many lines the summary has.
    lines: usize,
    /// Who made it: `extractive`, or a model.
    summarizer: Option<String>,
}

/// Waits for the conversation's queries as another query would.
pub(crate) async fn compact(
    agent: &Agent,
    ctx: &CallCtx,
    p: CompactParams,
) -> Result<CompactResult, CallError> {
    let owner = Owner::of(ctx)?;
    let asked = Some(named(p.context_id.as_deref()));
    let key = agent
        .conversations
        .queue_key(&owner, asked, DEFAULT_AGENT)
        .await?;
    let _place = agent.queue.enter(ctx, key).await?;
    let context = agent.conversations.show(&owner, asked).await?;
    let model = context.last_model.as_deref();
    // A model that is no longer configured counts as any other does.
    let model = agent.model(model).unwrap_or(agent.model(None)?);
    let hooks = agent.host.hooks();
    let compactor = Compactor {
        agent,
        ctx,
        hooks: &hooks,
        context: context.id.clone(),
        snapshot: QuerySnapshot {
            tokens_used: context.tokens_used,
            token_budget: context.token_budget,
            ..chat::snapshot_before(agent, ctx, Some(&context.id))
        },
        counter: chat::counter(&model),
    };
    Ok(match compactor.run().await? {
        None => CompactResult {
            context_id: context.id,
            compacted: false,
            before: context.tokens_used,
            after: context.tokens_used,
            folded: None,
            lines: agent.conversations.summary(&owner, asked).await?.len(),
            summarizer: None,
        },
        Some(Shortened {
            compaction,
            summarizer,
        }) => CompactResult {
            context_id: context.id,
            compacted: true,
            before: compaction.before,
            after: compaction.after,
            folded: Some(compaction.folded),
            lines: compaction.lines,
            summarizer: Some(summarizer),
        },
    })
}
