//! `agent.show`.

use dodona_plugin::CallError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named;
use crate::conversation::{Conversations, KeyDecision, OracleContext, Owner, SummaryLine};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ShowParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ShowResult {
    /// Its state, with the exchanges of its window.
    context: OracleContext,
    /// What it remembers, in the order it was said.
    decisions: Vec<KeyDecision>,
    /// What stands for exchanges that have left the window, line by line, with where each comes
    /// from; and what is pinned.
    summary: Vec<SummaryLine>,
}

pub(super) async fn show(
    conversations: &Conversations,
    owner: &Owner,
    p: ShowParams,
) -> Result<ShowResult, CallError> {
    let asked = Some(named(p.context_id.as_deref()));
    Ok(ShowResult {
        context: conversations.show(owner, asked).await?,
        decisions: conversations.decisions(owner, asked).await?,
        summary: conversations.summary(owner, asked).await?,
    })
}
