//! `agent.result`.

use dodona_plugin::CallError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::{Conversations, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ResultParams {
    /// The handle, as the cut result tells it.
    handle: String,
    /// Where to begin, in characters.
    #[serde(default)]
    from: usize,
    /// How many characters at most.
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = 20000))]
    limit: usize,
}

fn some() -> usize {
    4_000
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ResultPart {
    /// That part of the result.
    text: String,
    /// Where the next part begins, if there is one.
    next: Option<usize>,
}

pub(super) async fn part(
    conversations: &Conversations,
    owner: &Owner,
    p: ResultParams,
) -> Result<ResultPart, CallError> {
    let whole = conversations.result(owner, &p.handle).await?;
    let mut rest = whole.chars().skip(p.from);
    let text: String = rest.by_ref().take(p.limit).collect();
    let next = rest.next().map(|_| p.from + p.limit);
    Ok(ResultPart { text, next })
}
