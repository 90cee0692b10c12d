//! `agent.queries`.

use dodona_plugin::CallError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named;
use crate::conversation::{Conversations, Owner, QueryInfo};

#[derive(Deserialize, JsonSchema)]
pub(super) struct QueriesParams {
    /// Of which conversation, by id or name; the default one without.
    context_id: Option<String>,
    /// How many at most.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn limit() -> u32 {
    20
}

#[derive(Serialize, JsonSchema)]
pub(super) struct QueriesResult {
    /// The queries, the latest first.
    queries: Vec<QueryInfo>,
}

pub(super) async fn list(
    conversations: &Conversations,
    owner: &Owner,
    p: QueriesParams,
) -> Result<QueriesResult, CallError> {
    let asked = Some(named(p.context_id.as_deref()));
    let queries = conversations.queries(owner, asked, p.limit).await?;
    Ok(QueriesResult { queries })
}
