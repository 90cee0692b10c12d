//! Converting a journaled event to the facts that rules saw.

use std::borrow::Cow;
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use dodona_proto::{QuerySnapshot, Severity};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::context::{CallFacts, Data, EventFacts, Facts, ResultFacts, empty};
use crate::format::Trigger;
use crate::reads::Reads;

/// An event whose payload has an unknown format.
#[derive(Debug, thiserror::Error)]
#[error("the event {id} ({kind}) cannot be read")]
pub struct Unreadable {
    pub id: uuid::Uuid,
    pub kind: String,
    #[source]
    pub source: serde_json::Error,
}

/// The parts of a payload that rules may read. Large parts are parsed only when needed.
#[derive(Deserialize)]
pub(super) struct Body<'e> {
    #[serde(default)]
    pub(super) snapshot: Option<QuerySnapshot>,
    #[serde(borrow, default)]
    pub(super) tool_name: Option<Cow<'e, str>>,
    #[serde(borrow, default)]
    pub(super) path: Option<Cow<'e, str>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'e RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'e RawValue>,
    #[serde(default)]
    pub(super) result_bytes: Option<u64>,
    #[serde(borrow, default)]
    error: Option<Cow<'e, str>>,
    #[serde(default)]
    duration_ms: f64,
    #[serde(borrow, default)]
    ending: Option<Cow<'e, str>>,
    #[serde(borrow, default)]
    surface: Option<Cow<'e, str>>,
    #[serde(borrow, default)]
    context_id: Option<Cow<'e, str>>,
    #[serde(default)]
    turns: i64,
}

impl<'e> Body<'e> {
    pub(super) fn of(event: &'e RecordedEvent) -> Result<Self, Unreadable> {
        serde_json::from_str(&event.payload).map_err(|source| unreadable(event, source))
    }
}

pub(super) fn unreadable(event: &RecordedEvent, source: serde_json::Error) -> Unreadable {
    Unreadable {
        id: event.id,
        kind: event.kind.clone(),
        source,
    }
}

/// The facts of an event, with the requested large parts. The caller adds the tool calls.
pub(super) fn facts(
    event: &RecordedEvent,
    body: &Body<'_>,
    trigger: Trigger,
    reads: Reads,
) -> Result<Facts, serde_json::Error> {
    let mut facts = body
        .snapshot
        .as_ref()
        .map(Facts::of_query)
        .unwrap_or_default();
    if let Some(user) = &event.user {
        facts.user.id = user.to_string();
    }
    facts.project.id = (event.project.as_ref()).map_or_else(String::new, ToString::to_string);
    facts.event = Some(EventFacts {
        kind: event.kind.clone(),
        source: event.source.clone(),
        severity: severity(event.severity).to_owned(),
        payload: if reads.any(Reads::PAYLOAD) {
            Arc::new(payload(event, trigger)?)
        } else {
            empty()
        },
        timestamp: event.timestamp.to_string(),
    });
    if trigger.is_of_tools() {
        // An unknown surface of a later version counts as part of a query.
        let surface = body.surface.as_deref().map(Value::from);
        facts.surface = surface.and_then(|word| serde_json::from_value(word).ok());
    }
    match trigger {
        Trigger::OnToolCall => facts.call = Some(call(body, reads)?),
        Trigger::OnToolComplete | Trigger::OnToolFailure => {
            let denied = body.ending.as_deref() == Some("denied");
            let failed = trigger == Trigger::OnToolFailure && !denied;
            facts
                .history
                .add(body.tool_name.as_deref().unwrap_or_default(), failed);
            facts.result = Some(result(body, trigger, reads)?);
        }
        Trigger::OnSessionEnd => {
            facts.context_id = body.context_id.as_ref().map(ToString::to_string);
            facts.turn.number = body.turns;
        }
        _ => {}
    }
    Ok(facts)
}

/// The part of a payload that is not available elsewhere in the context.
fn payload(event: &RecordedEvent, trigger: Trigger) -> Result<Value, serde_json::Error> {
    let mut payload: Value = serde_json::from_str(&event.payload)?;
    if let Some(fields) = payload.as_object_mut() {
        fields.shift_remove("snapshot");
        fields.shift_remove("result");
        if trigger == Trigger::OnSessionEnd {
            fields.shift_remove("user");
            fields.shift_remove("project");
        }
    }
    Ok(payload)
}

fn call(body: &Body<'_>, reads: Reads) -> Result<CallFacts, serde_json::Error> {
    Ok(CallFacts {
        tool_name: name(body),
        arguments: match body.arguments.filter(|_| reads.any(Reads::ARGUMENTS)) {
            Some(arguments) => Data::from(serde_json::from_str::<Value>(arguments.get())?),
            None => Data::default(),
        },
    })
}

fn result(
    body: &Body<'_>,
    trigger: Trigger,
    reads: Reads,
) -> Result<ResultFacts, serde_json::Error> {
    Ok(ResultFacts {
        tool_name: name(body),
        success: trigger == Trigger::OnToolComplete,
        result: match body.result.filter(|_| reads.any(Reads::RESULT)) {
            Some(result) => Data::from(serde_json::from_str::<Value>(result.get())?),
            None => Data::from(Value::Null),
        },
        error: body.error.as_ref().map(ToString::to_string),
        duration_ms: body.duration_ms,
    })
}

fn name(body: &Body<'_>) -> String {
    body.tool_name.as_deref().unwrap_or_default().to_owned()
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Debug => "debug",
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
