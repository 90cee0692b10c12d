//! `agent.usage`.

use dodona_plugin::CallError;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::conversation::{Conversations, Owner, UsageBy, UsageFilter, UsageReport};

#[derive(Deserialize, JsonSchema)]
pub(super) struct UsageParams {
    /// What to sum up by.
    #[serde(default)]
    by: UsageBy,
    /// Only one conversation, by id or name.
    context_id: Option<String>,
    /// Only from then on.
    since: Option<Timestamp>,
    /// Only before then.
    until: Option<Timestamp>,
    /// Only this path and what is below it, such as `agent.librarian`.
    path: Option<String>,
    /// How many sums at most, the latest first.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn limit() -> u32 {
    100
}

pub(super) async fn usage(
    conversations: &Conversations,
    owner: &Owner,
    p: UsageParams,
) -> Result<UsageReport, CallError> {
    let filter = UsageFilter {
        context: p.context_id,
        since: p.since,
        until: p.until,
        path: p.path,
        limit: p.limit,
    };
    Ok(conversations.usage(owner, p.by, filter).await?)
}
