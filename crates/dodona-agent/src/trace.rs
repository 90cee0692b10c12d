//! `agent.trace`: everything that is known of how a query went.

use dodona_plugin::store::Redactor;
use dodona_plugin::store::journal::{EventFilter, ReadPosition, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{CallId, Message, Usage};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::conversation::{
    ContextId, Owner, QueryBelow, QueryInfo, QueryState, RecordedCall, RecordedQuery, RecordedTurn,
};

/// The most events that a trace has.
const MOST_EVENTS: usize = 2_000;

/// The most queries of agents that a trace has.
const MOST_AGENTS: usize = 100;

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
    calls: Vec<CallTrace>,
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

/// A tool that ran, and what ran below it.
#[derive(Serialize, JsonSchema)]
struct CallTrace {
    #[serde(flatten)]
    call: RecordedCall,
    /// What the agent did that it was delegated to.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentTrace>,
}

#[derive(Serialize, JsonSchema)]
struct AgentTrace {
    /// Which agent.
    name: String,
    /// Its query.
    query_id: String,
    /// How that ended.
    state: QueryState,
    /// Its requests to models, in order.
    turns: Vec<TurnTrace>,
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
    let below = below(agent, &owner, &recorded.info).await?;
    let hooks = hooks(agent, &recorded.info, &below);
    let turns = turns(&recorded, &mut below.into_iter().map(Some).collect());
    let last = turns.last().filter(|turn| turn.calls.is_empty());
    let complete = recorded.info.state == QueryState::Complete;
    let mut result = TraceResult {
        answer: last.filter(|_| complete).map(|turn| turn.text.clone()),
        query: recorded.info,
        context_id: recorded.context,
        turns,
        events,
        hooks,
    };
    result.redact(&agent.redactor);
    Ok(result)
}

impl TraceResult {
    /// Removes secrets. Traces are shown on screens and attached to reports; only the conversation
    /// itself keeps what was sent.
    fn redact(&mut self, redactor: &Redactor) {
        redactor.text(&mut self.query.question);
        if let Some(reason) = &mut self.query.reason {
            redactor.text(reason);
        }
        if let Some(answer) = &mut self.answer {
            redactor.text(answer);
        }
        redact_turns(&mut self.turns, redactor);
        for event in &mut self.events {
            redactor.value(&mut event.payload);
        }
        for hook in &mut self.hooks {
            redactor.value(hook);
        }
    }
}

fn redact_turns(turns: &mut [TurnTrace], redactor: &Redactor) {
    for turn in turns {
        redactor.text(&mut turn.text);
        for call in &mut turn.calls {
            let mut arguments = Value::Object(std::mem::take(&mut call.call.arguments));
            redactor.value(&mut arguments);
            if let Value::Object(arguments) = arguments {
                call.call.arguments = arguments;
            }
            if let Some(agent) = &mut call.agent {
                redact_turns(&mut agent.turns, redactor);
            }
        }
    }
}

/// The queries of agents that it delegated to, and of those that these delegated to.
async fn below(
    agent: &Agent,
    owner: &Owner,
    info: &QueryInfo,
) -> Result<Vec<(QueryBelow, RecordedQuery)>, CallError> {
    let conversations = &agent.conversations;
    let mut found = Vec::new();
    for below in conversations.below(owner, info, MOST_AGENTS).await? {
        let recorded = conversations.recorded(owner, below.info.id.as_str());
        let recorded = recorded.await?;
        found.push((below, recorded));
    }
    Ok(found)
}

/// Those that no call has been found for yet.
type Untold = Vec<Option<(QueryBelow, RecordedQuery)>>;

fn turns(recorded: &RecordedQuery, untold: &mut Untold) -> Vec<TurnTrace> {
    let above = recorded.info.call_id;
    let turns = recorded.turns.iter();
    turns
        .map(|recorded| turn(recorded, above.as_ref(), untold))
        .collect()
}

fn turn(recorded: &RecordedTurn, above: Option<&CallId>, untold: &mut Untold) -> TurnTrace {
    let text = match &recorded.said {
        Some(Message::Assistant { content, .. }) => content.clone(),
        _ => String::new(),
    };
    let calls = recorded.calls.iter().map(|call| CallTrace {
        agent: delegated(call, above, untold),
        call: call.clone(),
    });
    TurnTrace {
        turn: recorded.turn,
        at: recorded.at,
        messages: recorded.messages.len(),
        text,
        calls: calls.collect(),
        tools_told: recorded.sent.tools.told,
        tools_known: recorded.sent.tools.known,
        tokens_saved: recorded.sent.tools.saved,
        usage: recorded.usage,
        cost_micros: recorded.cost_micros,
    }
}

/// What became of a task that a call gave to an agent: the first of those below it that has this
/// task.
fn delegated(
    call: &RecordedCall,
    above: Option<&CallId>,
    untold: &mut Untold,
) -> Option<AgentTrace> {
    let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let (name, task) = (argument("name")?, argument("task")?.trim());
    let place = untold.iter().position(|below| {
        below.as_ref().is_some_and(|(below, _)| {
            let within = below.info.call_id.zip(above);
            below.agent == name
                && below.info.question.starts_with(task)
                && within.is_some_and(|(call, above)| call.is_within(above))
        })
    })?;
    let (below, recorded) = untold.get_mut(place)?.take()?;
    Some(AgentTrace {
        name: below.agent,
        query_id: below.info.id.to_string(),
        state: below.info.state,
        turns: turns(&recorded, untold),
    })
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
    let (mut found, mut place) = (Vec::new(), ReadPosition::Beginning);
    for _ in 0..MOST_PAGES {
        let page = agent.history.page(filter.clone(), place).await?;
        let Some(last) = page.last() else {
            break;
        };
        place = ReadPosition::After(last.position);
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

/// What callbacks did in it, and in what ran below it.
fn hooks(agent: &Agent, info: &QueryInfo, below: &[(QueryBelow, RecordedQuery)]) -> Vec<Value> {
    let runs = agent.host.hooks().recent(usize::MAX);
    let is_of_it = |query: &str| {
        let mut below = below.iter();
        query == info.id.as_str() || below.any(|(below, _)| query == below.info.id.as_str())
    };
    let own = runs.iter().filter(|run| {
        let acted = run.edit.is_some() || run.effects > 0 || run.error.is_some();
        acted && run.query.as_deref().is_some_and(is_of_it)
    });
    own.map(|run| json!(run)).collect()
}
