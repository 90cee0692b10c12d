//! `agent.trace`: everything that is known of how a query went.

use dodona_plugin::store::journal::{EventFilter, Place, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{Message, Usage};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::conversation::{ContextId, Owner, QueryInfo, RecordedCall, RecordedQuery, RecordedTurn};

/// The most events that a trace has.
const MOST_EVENTS: usize = 2_000;

/// The most pages of the journal that are read for it.
const MOST_PAGES: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TraceParams {
    /// Which query, by its id or the end of it.
    #[schemars(length(min = 1))]
    query_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TraceResult {
    /// What is known of the query.
    query: QueryInfo,
    /// In which conversation.
    context_id: ContextId,
    /// The answer, where there is one.
    answer: Option<String>,
    /// Its requests to models, in order.
    turns: Vec<TurnTrace>,
    /// What was journaled of it, in order: tools, rules, compaction.
    events: Vec<EventTrace>,
    /// What callbacks of plugins changed, wanted or failed at in it, as far as this process
    /// remembers.
    hooks: Vec<Value>,
}

#[derive(Serialize, JsonSchema)]
struct TurnTrace {
    /// Which, from 1.
    turn: u32,
    /// When it had been answered.
    at: Timestamp,
    /// How many messages were shown.
    messages: usize,
    /// What was said, where no tool was asked for, or beside that.
    text: String,
    /// The tools that it asked for.
    calls: Vec<RecordedCall>,
    /// How many tools the model was told of.
    tools_told: usize,
    /// How many it could have called.
    tools_known: usize,
    /// How many tokens it saved not to tell of the others.
    tokens_saved: u64,
    /// What it took.
    usage: Usage,
    /// What that cost, in millionths of a dollar, where it is known.
    cost_micros: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct EventTrace {
    /// When.
    at: Timestamp,
    /// What happened.
    kind: String,
    /// Who says so.
    source: String,
    /// In which call.
    call: Option<String>,
    /// Particulars, without how the query stood.
    payload: Value,
}

/// Tells how a query went.
pub(crate) async fn trace(
    agent: &Agent,
    ctx: &CallCtx,
    p: TraceParams,
) -> Result<TraceResult, CallError> {
    let owner = Owner::of(ctx)?;
    let recorded = agent.conversations.recorded(&owner, &p.query_id).await?;
    let events = events(agent, &owner, &recorded).await?;
    let hooks = hooks(agent, &recorded.info);
    let turns: Vec<TurnTrace> = recorded.turns.iter().map(turn).collect();
    let last = turns.last().filter(|turn| turn.calls.is_empty());
    let complete = recorded.info.state == crate::conversation::QueryState::Complete;
    Ok(TraceResult {
        answer: last.filter(|_| complete).map(|turn| turn.text.clone()),
        query: recorded.info,
        context_id: recorded.context,
        turns,
        events,
        hooks,
    })
}

fn turn(recorded: &RecordedTurn) -> TurnTrace {
    let text = match &recorded.said {
        Some(Message::Assistant { content, .. }) => content.clone(),
        _ => String::new(),
    };
    TurnTrace {
        turn: recorded.turn,
        at: recorded.at,
        messages: recorded.messages.len(),
        text,
        calls: recorded.calls.clone(),
        tools_told: recorded.sent.tools.told,
        tools_known: recorded.sent.tools.known,
        tokens_saved: recorded.sent.tools.saved,
        usage: recorded.usage,
        cost_micros: recorded.cost_micros,
    }
}

/// The events that were journaled while it ran and that are about it.
async fn events(
    agent: &Agent,
    owner: &Owner,
    recorded: &RecordedQuery,
) -> Result<Vec<EventTrace>, CallError> {
    let filter = EventFilter {
        project: Some(owner.project.clone()),
        since: Some(recorded.info.started_at),
        // What is journaled of its end comes just after it.
        until: recorded
            .info
            .ended_at
            .map(|at| at + jiff::SignedDuration::from_secs(5)),
        ..EventFilter::of(owner.user.clone())
    };
    let (mut found, mut place) = (Vec::new(), Place::Beginning);
    for _ in 0..MOST_PAGES {
        let page = agent.history.page(filter.clone(), place).await?;
        let Some(last) = page.last() else {
            break;
        };
        place = Place::After(last.position);
        found.extend(page.iter().filter_map(|event| event_of(event, recorded)));
        if found.len() >= MOST_EVENTS {
            found.truncate(MOST_EVENTS);
            break;
        }
    }
    Ok(found)
}

fn event_of(event: &RecordedEvent, recorded: &RecordedQuery) -> Option<EventTrace> {
    let mut payload: Value = serde_json::from_str(&event.payload).ok()?;
    // Those that are about what others did, such as decisions of rules, have no snapshot; those of
    // agents that it delegated to have one of theirs.
    let about = [&payload["snapshot"]["query_id"], &payload["query_id"]];
    let within = match (&event.call, &recorded.info.call_id) {
        (Some(call), Some(root)) => call.is_within(root),
        _ => false,
    };
    if !within && !about.contains(&&json!(recorded.info.id)) {
        return None;
    }
    if let Some(fields) = payload.as_object_mut() {
        fields.remove("snapshot");
    }
    Some(EventTrace {
        at: event.timestamp,
        kind: event.kind.clone(),
        source: event.source.clone(),
        call: event.call.as_ref().map(ToString::to_string),
        payload,
    })
}

/// What callbacks did in it.
fn hooks(agent: &Agent, info: &QueryInfo) -> Vec<Value> {
    let runs = agent.host.hooks().recent(usize::MAX);
    let own = runs.iter().filter(|run| {
        let acted = run.edit.is_some() || run.effects > 0 || run.error.is_some();
        acted && run.query.as_deref() == Some(info.id.as_str())
    });
    own.map(|run| json!(run)).collect()
}
