//! `agent.messages`: what rules saw of a conversation, when they are asked again.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::chat::{last_messages, messages_then};
use crate::conversation::{Owner, QueryId};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MessagesParams {
    /// Which query, by its id or the end of it.
    #[schemars(length(min = 1))]
    query_id: String,
    /// How the query stood in some turns of it, by its snapshots: then only these are told, without
    /// what was added before the request was sent, and without those that are not as they were.
    #[schemars(length(max = 10_000))]
    turns: Option<Vec<TurnSeen>>,
}

/// What a snapshot says about its turn.
#[derive(Deserialize, JsonSchema)]
struct TurnSeen {
    /// Which, from 1.
    turn: u32,
    /// How many messages there were.
    message_count: usize,
    /// The first exchange that was shown, by its position.
    from: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MessagesResult {
    /// Which query.
    query_id: QueryId,
    /// Its requests that were answered, in order, or those that were asked for.
    turns: Vec<TurnMessages>,
}

#[derive(Serialize, JsonSchema)]
struct TurnMessages {
    /// Which, from 1.
    turn: u32,
    /// How many messages there were.
    message_count: usize,
    /// The last of them, each with `role` and `content`, as rules have them in
    /// `context.history.messages`.
    messages: Vec<Value>,
}

/// Makes the messages of a query's requests again: they are kept once, by the exchange.
pub(crate) async fn messages(
    agent: &Agent,
    ctx: &CallCtx,
    p: MessagesParams,
) -> Result<MessagesResult, CallError> {
    let owner = Owner::of(ctx)?;
    let recorded = agent.conversations.recorded(&owner, &p.query_id).await?;
    let preloaded = recorded.turns.first().and_then(super::preloaded);
    let mut turns = Vec::new();
    for turn in &recorded.turns {
        let sent = messages_then(turn, &recorded.info.question, preloaded);
        let counts = match &p.turns {
            None => vec![sent.len()],
            Some(seen) => (seen.iter())
                .filter(|seen| seen.turn == turn.turn && seen.from == turn.from)
                .map(|seen| seen.message_count)
                .collect(),
        };
        // What is told to the model comes last, after rules were asked.
        let shown = counts.into_iter().filter_map(|count| sent.get(..count));
        turns.extend(shown.map(|messages| TurnMessages {
            turn: turn.turn,
            message_count: messages.len(),
            messages: last_messages(messages),
        }));
    }
    Ok(MessagesResult {
        turns,
        query_id: recorded.info.id,
    })
}
