//! Facts from events of the journal: what a rule saw, or would have seen.

use std::sync::Arc;

use dodona_proto::{Event, QuerySnapshot, Severity};
use serde_json::{Map, Value};

use super::facts::{CallFacts, Data, EventFacts, Facts, ResultFacts};
use super::live::Occurrence;
use crate::format::Trigger;

impl Occurrence {
    /// What an event of the journal was to rules; nothing if it is none that they are asked about.
    ///
    /// Of the history, the lists of messages and tool calls are not in the journal's event and are
    /// empty; counts, failures and the time of the session are what they were.
    pub fn of_event(event: &Event) -> Option<Self> {
        let trigger = Trigger::of_event(&event.kind)?;
        let mut payload = event.payload.as_object().cloned().unwrap_or_default();
        let mut facts = facts(event, &mut payload, trigger);
        if trigger == Trigger::OnToolCall {
            facts.call = Some(CallFacts {
                tool_name: text(&payload, "tool_name"),
                arguments: Data::from(payload.get("arguments").cloned().unwrap_or_default()),
            });
        }
        if matches!(trigger, Trigger::OnToolComplete | Trigger::OnToolFailure) {
            facts.result = Some(result(&mut payload, trigger));
            let denied = payload.get("ending") == Some(&Value::from("denied"));
            let failed = trigger == Trigger::OnToolFailure && !denied;
            let tool = text(&payload, "tool_name");
            facts.history.add(&tool, failed);
        }
        facts.event = Some(EventFacts {
            kind: event.kind.clone(),
            source: event.source.clone(),
            severity: word(event.severity).to_owned(),
            payload: Arc::new(Value::Object(payload)),
            timestamp: event.timestamp.to_string(),
        });
        Some(Self { trigger, facts })
    }

    /// Whether the journal's event has the result that rules saw: one that is too large is not
    /// kept.
    pub fn has_result(event: &Event) -> bool {
        event.payload.get("result_bytes").is_none()
    }
}

fn facts(event: &Event, payload: &mut Map<String, Value>, trigger: Trigger) -> Facts {
    let snapshot = payload.shift_remove("snapshot").unwrap_or_default();
    let snapshot: Option<QuerySnapshot> = serde_json::from_value(snapshot).ok();
    let mut facts = snapshot.as_ref().map(Facts::of_query).unwrap_or_default();
    if let Some(user) = &event.user {
        facts.user.id = user.to_string();
    }
    if let Some(project) = &event.project {
        facts.project.id = project.to_string();
    }
    if trigger == Trigger::OnSessionEnd {
        // Whose session it was is in the payload too.
        for (key, field) in [
            ("user", &mut facts.user.id),
            ("project", &mut facts.project.id),
        ] {
            if let Some(Value::String(id)) = payload.shift_remove(key) {
                *field = id;
            }
        }
        facts.context_id = Some(text(payload, "context_id"));
        facts.turn.number = payload.get("turns").and_then(Value::as_i64).unwrap_or(0);
    }
    facts
}

fn result(payload: &mut Map<String, Value>, trigger: Trigger) -> ResultFacts {
    ResultFacts {
        tool_name: text(payload, "tool_name"),
        success: trigger == Trigger::OnToolComplete,
        result: Data::from(payload.shift_remove("result").unwrap_or_default()),
        error: payload
            .get("error")
            .and_then(Value::as_str)
            .map(str::to_owned),
        duration_ms: payload
            .get("duration_ms")
            .and_then(Value::as_f64)
            .unwrap_or(0.0),
    }
}

fn text(payload: &Map<String, Value>, key: &str) -> String {
    let found = payload.get(key).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Debug => "debug",
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
