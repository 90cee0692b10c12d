//! Converting payloads of hook points to facts.
//!
//! The payload of an event is the same as in the journal, so that an evaluation can be repeated from there.

use std::sync::Arc;

use dodona_proto::hook::{
    ModelCall, QueryReceived, SessionEnded, ToolEnded, ToolEnding, ToolPending, TurnCompleted,
};
use dodona_proto::{QuerySnapshot, UserId};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::facts::{CallFacts, Data, EventFacts, Facts, History, Party, ResultFacts, Turn};
use crate::format::Trigger;

/// The source of events of the agent as a whole.
const AGENT: &str = "agent";

/// A trigger with its facts.
#[derive(Debug, Clone)]
pub struct Occurrence {
    /// The trigger of the rules to evaluate.
    pub trigger: Trigger,
    pub facts: Facts,
}

impl Occurrence {
    fn new(trigger: Trigger, facts: Facts, source: &str, payload: Value) -> Self {
        let severity = match trigger {
            Trigger::OnToolFailure => "warning",
            _ => "info",
        };
        let event = EventFacts {
            kind: trigger.event_type().to_owned(),
            source: source.to_owned(),
            severity: severity.to_owned(),
            payload: Arc::new(payload),
            timestamp: Timestamp::now().to_string(),
        };
        let event = Some(event);
        Self {
            trigger,
            facts: Facts { event, ..facts },
        }
    }

    /// A query has started.
    pub fn query_start(payload: &QueryReceived) -> Self {
        let facts = Facts::of_query(&payload.snapshot);
        let about = json!({ "question": payload.question });
        Self::new(Trigger::OnQueryStart, facts, AGENT, about)
    }

    /// A request to a model is about to be sent.
    pub fn turn_start(payload: &ModelCall) -> Self {
        let facts = Facts::of_query(&payload.snapshot);
        let about = json!({ "model": payload.model });
        Self::new(Trigger::OnTurnStart, facts, AGENT, about)
    }

    /// A turn has ended.
    pub fn turn_end(payload: &TurnCompleted) -> Self {
        let facts = Facts::of_query(&payload.snapshot);
        let about = json!({
            "is_last": payload.is_last,
            "tool_calls": payload.tool_calls,
            "error": payload.error,
        });
        Self::new(Trigger::OnTurnEnd, facts, AGENT, about)
    }

    /// A tool is about to run.
    pub fn tool_call(payload: &Arc<ToolPending>) -> Self {
        let mut facts = match &payload.snapshot {
            Some(snapshot) => Facts::of_query(snapshot),
            None => Facts::of_user(&payload.user),
        };
        facts.project.id = name(payload.project.as_ref());
        facts.surface = Some(payload.surface);
        facts.call = Some(CallFacts {
            tool_name: payload.tool_name.clone(),
            arguments: Data::ArgumentsOf(Arc::clone(payload)),
        });
        let about = json!({
            "tool_name": payload.tool_name,
            "method": payload.method,
            "path": payload.path,
            "surface": payload.surface,
            "arguments": payload.arguments,
        });
        Self::new(Trigger::OnToolCall, facts, payload.method.plugin(), about)
    }

    /// A tool has run or was denied. The history already contains the call.
    pub fn tool_end(payload: &Arc<ToolEnded>) -> Self {
        let mut facts = match &payload.snapshot {
            Some(snapshot) => Facts::of_query(snapshot),
            None => Facts::of_user(&payload.user),
        };
        facts.project.id = name(payload.project.as_ref());
        facts.surface = Some(payload.surface);
        let success = payload.ending == ToolEnding::Success;
        let failed = !success && payload.ending != ToolEnding::Denied;
        facts.history.add(&payload.tool_name, failed);
        facts.result = Some(ResultFacts {
            tool_name: payload.tool_name.clone(),
            success,
            result: Data::ResultOf(Arc::clone(payload)),
            error: payload.error.clone(),
            duration_ms: payload.duration_ms,
        });
        let about = json!({
            "tool_name": payload.tool_name,
            "method": payload.method,
            "path": payload.path,
            "surface": payload.surface,
            "arguments": payload.arguments,
            "ending": payload.ending,
            "answered": payload.answered,
            "error": payload.error,
            "duration_ms": payload.duration_ms,
        });
        let trigger = if success {
            Trigger::OnToolComplete
        } else {
            Trigger::OnToolFailure
        };
        Self::new(trigger, facts, payload.method.plugin(), about)
    }

    /// A session has ended.
    pub fn session_end(payload: &SessionEnded) -> Self {
        let mut facts = Facts::of_user(&payload.user);
        facts.project.id = name(payload.project.as_ref());
        facts.context_id = Some(payload.context_id.clone());
        facts.turn.number = whole(payload.turns);
        let about = json!({
            "context_id": payload.context_id,
            "reason": payload.reason,
            "turns": payload.turns,
        });
        Self::new(Trigger::OnSessionEnd, facts, AGENT, about)
    }
}

impl Facts {
    /// The facts of a query snapshot.
    pub fn of_query(snapshot: &QuerySnapshot) -> Self {
        let history = &snapshot.history;
        let failures = history.failures.iter();
        let failures = failures.map(|(tool, count)| (tool.clone(), json!(count)));
        Self {
            turn: Turn {
                number: whole(snapshot.turn.number),
                token_usage: snapshot.turn.token_usage,
                context_usage: snapshot.turn.context_usage,
                iteration_count: i64::from(snapshot.turn.iteration_count),
                max_iterations: i64::from(snapshot.turn.max_iterations),
            },
            history: History {
                messages: Arc::clone(&history.messages),
                tools: Arc::clone(&history.tools),
                failures: Arc::new(Value::Object(failures.collect())),
                total_tool_calls: whole(history.total_tool_calls),
                total_failures: whole(history.total_failures),
                message_count: whole(history.message_count),
            },
            project: Party {
                id: name(snapshot.project.as_ref()),
                ..Party::default()
            },
            session_started: history.session_started,
            context_id: Some(snapshot.context_id.clone()),
            query_id: Some(snapshot.query_id.clone()),
            ..Self::of_user(&snapshot.user)
        }
    }

    /// The facts of an event outside queries.
    pub fn of_user(user: &UserId) -> Self {
        Self {
            user: Party {
                id: user.to_string(),
                ..Party::default()
            },
            ..Self::default()
        }
    }
}

impl History {
    /// Adds a call that has just ended to the counts.
    pub(crate) fn add(&mut self, tool: &str, failed: bool) {
        self.total_tool_calls += 1;
        if !failed {
            return;
        }
        self.total_failures += 1;
        if let Value::Object(failures) = Arc::make_mut(&mut self.failures) {
            let before = failures.get(tool).and_then(Value::as_i64).unwrap_or(0);
            failures.insert(tool.to_owned(), json!(before + 1));
        }
    }
}

fn name(id: Option<&impl ToString>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
