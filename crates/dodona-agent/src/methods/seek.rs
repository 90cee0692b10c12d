//! `agent.seek` and `agent.resolve`.

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::{ContextId, Conversations, FoundMemory, MemoryKind, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SeekParams {
    /// A question, or words.
    #[schemars(length(min = 1, max = 65536))]
    query: String,
    /// How many at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    limit: usize,
}

fn five() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SeekResult {
    /// What was found, best first.
    passages: Vec<Memory>,
}

/// Something that was said or kept, and where it stands.
#[derive(Serialize, JsonSchema)]
struct Memory {
    /// Where it stands.
    source: Source,
    /// What sort of thing it is, for people.
    heading: &'static str,
    /// What sort of thing it is.
    kind: MemoryKind,
    /// In which conversation.
    context_id: ContextId,
    /// The text.
    text: String,
    /// How well it answers; larger is better, and only that.
    score: f32,
}

impl From<FoundMemory> for Memory {
    fn from(found: FoundMemory) -> Self {
        Self {
            source: found.source,
            heading: found.kind.as_str(),
            kind: found.kind,
            context_id: found.context,
            text: found.text,
            score: found.score,
        }
    }
}

pub(super) async fn seek(
    conversations: &Conversations,
    ctx: &CallCtx,
    p: SeekParams,
) -> Result<SeekResult, CallError> {
    let own = conversations.context_of_call(&ctx.call_id);
    let found = conversations
        .seek(&Owner::of(ctx)?, &p.query, p.limit, own.as_ref())
        .await?;
    Ok(SeekResult {
        passages: found.into_iter().map(Memory::from).collect(),
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ResolveParams {
    source: Source,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Resolved {
    /// The text that stands there now.
    text: String,
    /// Whether it is another than was cited.
    stale: bool,
}

pub(super) async fn resolve(
    conversations: &Conversations,
    ctx: &CallCtx,
    p: ResolveParams,
) -> Result<Resolved, CallError> {
    let (text, stale) = conversations.resolve(&Owner::of(ctx)?, &p.source).await?;
    Ok(Resolved { text, stale })
}
