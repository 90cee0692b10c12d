//! Entries of the journal.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use dodona_proto::{
    CallId, DoneStatus, ErrorCode, Event, HubStreamItem, ItemBody, ItemKind, MethodName,
    PluginPath, ProjectId, Severity, StreamId, Surface, UserId,
};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::JournalError;
use super::live::LiveStream;
use crate::{DbError, Row};

/// The start of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamHead {
    /// Id of the stream.
    pub stream: StreamId,
    pub user: UserId,
    pub project: Option<ProjectId>,
    /// The surface of the call.
    pub surface: Surface,
    pub method: MethodName,
    pub params: Value,
    pub began: Timestamp,
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEnd {
    /// As in its `Done` item.
    pub status: DoneStatus,
    /// As in its `Done` item.
    pub reason: Option<String>,
    pub ended: Timestamp,
}

/// The start of a mutating call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallHead {
    /// Id of the call.
    pub call: CallId,
    pub path: PluginPath,
    pub method: MethodName,
    pub user: UserId,
    pub project: Option<ProjectId>,
    pub params: Value,
    pub began: Timestamp,
}

/// A recorded trigger input or decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    pub kind: DecisionRecordKind,
    /// The trigger's or decision's name, such as `on_turn_start` or `deny`.
    pub name: String,
    /// The plugin that recorded it.
    pub source: String,
    pub call: Option<CallId>,
    pub user: Option<UserId>,
    pub project: Option<ProjectId>,
    pub at: Timestamp,
    pub body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionRecordKind {
    /// What a trigger saw.
    Trigger,
    Decision,
}

impl DecisionRecordKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Decision => "decision",
        }
    }
}

/// An item in the form in which it is stored and sent. Its body is JSON text, so that it is serialised only once
/// for all readers.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredItem {
    /// The call that emitted it.
    pub call_id: CallId,
    /// Number in the stream, from 1.
    pub seq: u64,
    /// The plugin path of the call.
    pub path: PluginPath,
    pub kind: ItemKind,
    /// The body, a JSON object.
    pub body: Box<str>,
}

impl StoredItem {
    /// Writes the flat object that goes over the wire.
    pub fn write_json(&self, out: &mut String) {
        // Ids and paths have no character that JSON escapes.
        let _ = write!(
            out,
            r#"{{"call_id":"{}","seq":{},"plugin_path":"{}""#,
            self.call_id, self.seq, self.path
        );
        if self.body.len() > 2 {
            out.push(',');
        }
        out.push_str(&self.body[1..]);
    }

    /// Whether it is the last item of its stream.
    pub fn ends_stream(&self) -> bool {
        self.kind == ItemKind::Done && self.call_id.depth() == 0
    }

    /// The item with its body parsed.
    pub fn to_item(&self) -> Result<HubStreamItem, serde_json::Error> {
        let body: ItemBody = serde_json::from_str(&self.body)?;
        Ok(HubStreamItem {
            call_id: self.call_id,
            seq: self.seq,
            plugin_path: self.path.clone(),
            body,
        })
    }
}

impl From<HubStreamItem> for StoredItem {
    fn from(item: HubStreamItem) -> Self {
        let HubStreamItem {
            call_id,
            seq,
            plugin_path: path,
            body,
        } = item;
        let text = serde_json::to_string(&body).expect("an item can always be written as JSON");
        Self {
            call_id,
            seq,
            path,
            kind: body.kind(),
            body: text.into(),
        }
    }
}

/// The body of an item before it is stored.
pub(super) enum Body {
    /// Text that may still grow while it waits: `{"content_type": …, "data": {"text": …}}`.
    Delta {
        content_type: Cow<'static, str>,
        text: String,
    },
    /// Any other body, as JSON text.
    Json { kind: ItemKind, text: String },
    /// A `Done`, not serialised yet because it also ends the stream.
    Done {
        status: DoneStatus,
        reason: Option<String>,
    },
}

impl Body {
    pub(super) fn from_item(body: ItemBody) -> Result<Self, serde_json::Error> {
        Ok(match body {
            ItemBody::Done { status, reason } => Self::Done { status, reason },
            ItemBody::Data { content_type, data } if content_type.ends_with("Delta") => {
                match delta_text(data) {
                    Ok(text) => Self::Delta { content_type, text },
                    Err(data) => Self::json(&ItemBody::Data { content_type, data })?,
                }
            }
            other => Self::json(&other)?,
        })
    }

    fn json(body: &ItemBody) -> Result<Self, serde_json::Error> {
        Ok(Self::Json {
            kind: body.kind(),
            text: serde_json::to_string(body)?,
        })
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Delta { text, .. } | Self::Json { text, .. } => text.len(),
            Self::Done { .. } => 0,
        }
    }

    pub(super) fn kind(&self) -> ItemKind {
        match self {
            Self::Delta { .. } => ItemKind::Data,
            Self::Json { kind, .. } => *kind,
            Self::Done { .. } => ItemKind::Done,
        }
    }

    pub(super) fn into_json(self) -> String {
        // Borrowed forms of the two bodies, so that a long text is not copied to be written.
        #[derive(Serialize)]
        struct Delta<'a> {
            content_type: &'a str,
            data: DeltaText<'a>,
        }
        #[derive(Serialize)]
        struct DeltaText<'a> {
            text: &'a str,
        }
        let written = match self {
            Self::Json { text, .. } => Ok(text),
            Self::Delta { content_type, text } => serde_json::to_string(&Delta {
                content_type: &content_type,
                data: DeltaText { text: &text },
            }),
            Self::Done { status, reason } => {
                serde_json::to_string(&ItemBody::Done { status, reason })
            }
        };
        written.expect("strings and plain enums can always be written as JSON")
    }
}

/// The text of `{"text": …}`; anything else is given back.
fn delta_text(mut data: Value) -> Result<String, Value> {
    match data.as_object_mut() {
        Some(fields) if fields.len() == 1 => match fields.get_mut("text") {
            Some(Value::String(text)) => Ok(std::mem::take(text)),
            _ => Err(data),
        },
        _ => Err(data),
    }
}

/// A request to the writer of the journal.
pub(super) enum Entry {
    Begin {
        head: Box<StreamHead>,
        params: String,
        live: Arc<LiveStream>,
    },
    Item {
        live: Arc<LiveStream>,
        call: CallId,
        path: PluginPath,
        body: Body,
    },
    CallBegan {
        head: Box<CallHead>,
        params: String,
    },
    CallEnded {
        call: CallId,
        status: DoneStatus,
        code: Option<ErrorCode>,
    },
    Event {
        event: Arc<Event>,
        body: String,
    },
    DecisionRecord {
        decided: Box<DecisionRecord>,
        body: String,
    },
    /// Empty. Its acknowledgement means that all earlier entries are committed.
    Flush,
}

/// A queued entry, with its permits and the channel of the caller that waits for the commit.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) ack: Option<oneshot::Sender<Result<(), JournalError>>>,
    /// Whether it may wait briefly to share a commit with later entries.
    pub(super) can_wait: bool,
}

impl Queued {
    pub(super) fn new(entry: Entry) -> Self {
        Self {
            entry,
            permit: None,
            ack: None,
            can_wait: false,
        }
    }
}

/// A call's id within its stream: what follows the stream's own id.
pub(super) fn call_suffix(call: &CallId) -> String {
    let full = call.to_string();
    full[call.stream().to_string().len()..].to_owned()
}

pub(super) fn read_item(stream: StreamId, row: &Row<'_>) -> Result<StoredItem, DbError> {
    let call = format!("{stream}{}", row.text(0)?);
    Ok(StoredItem {
        call_id: call.parse().map_err(|_| mangled("items.call"))?,
        seq: row.get(1)?,
        path: row.text(2)?.parse().map_err(|_| mangled("items.path"))?,
        kind: kind_from(row.get(3)?)?,
        body: row.text(4)?.into(),
    })
}

pub(super) fn kind_number(kind: ItemKind) -> i64 {
    match kind {
        ItemKind::Progress => 1,
        ItemKind::Data => 2,
        ItemKind::Error => 3,
        ItemKind::Done => 4,
    }
}

fn kind_from(number: i64) -> Result<ItemKind, DbError> {
    match number {
        1 => Ok(ItemKind::Progress),
        2 => Ok(ItemKind::Data),
        3 => Ok(ItemKind::Error),
        4 => Ok(ItemKind::Done),
        _ => Err(mangled("items.kind")),
    }
}

pub(super) fn read_head(row: &Row<'_>) -> Result<(StreamHead, Option<StreamEnd>), DbError> {
    let head = StreamHead {
        stream: word(row.text(0)?, "streams.stream_id")?,
        user: word(row.text(1)?, "streams.user_id")?,
        project: row
            .get::<Option<String>>(2)?
            .map(|id| word(&id, "streams.project_id"))
            .transpose()?,
        surface: word(row.text(3)?, "streams.surface")?,
        method: word(row.text(4)?, "streams.method")?,
        params: serde_json::from_str(row.text(5)?).map_err(|_| mangled("streams.params"))?,
        began: moment(row.get(6)?)?,
    };
    let Some(ended) = row.get::<Option<i64>>(7)? else {
        return Ok((head, None));
    };
    let end = StreamEnd {
        status: word(row.text(8)?, "streams.status")?,
        reason: row.get(9)?,
        ended: moment(ended)?,
    };
    Ok((head, Some(end)))
}

pub(super) fn read_event(row: &Row<'_>) -> Result<Event, DbError> {
    let optional = |index: usize| row.get::<Option<String>>(index);
    Ok(Event {
        kind: row.get(0)?,
        source: row.get(1)?,
        severity: optional(2)?
            .map(|text| word(&text, "records.severity"))
            .transpose()?
            .unwrap_or(Severity::Info),
        id: word(row.text(3)?, "records.event_id")?,
        user: optional(4)?
            .map(|text| word(&text, "records.user_id"))
            .transpose()?,
        project: optional(5)?
            .map(|text| word(&text, "records.project_id"))
            .transpose()?,
        call: optional(6)?
            .map(|text| word(&text, "records.call_id"))
            .transpose()?,
        timestamp: moment(row.get(7)?)?,
        payload: serde_json::from_str(row.text(8)?).map_err(|_| mangled("records.body"))?,
        causes: causes(optional(9)?),
    })
}

/// The types that led to an event, as a column has them: none of them has a comma.
pub(super) fn causes(column: Option<String>) -> Vec<String> {
    let types = column.as_deref().unwrap_or_default().split(',');
    types
        .filter(|one| !one.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Writes a word of the wire's vocabulary, such as an enum's variant or an id.
pub(super) fn word_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        other => unreachable!("a word of the wire is a string, not {other:?}"),
    }
}

pub(super) fn word<T: DeserializeOwned>(text: &str, column: &'static str) -> Result<T, DbError> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| mangled(column))
}

pub(super) fn moment(millis: i64) -> Result<Timestamp, DbError> {
    Timestamp::from_millisecond(millis).map_err(|_| mangled("a time"))
}

/// A column with an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` of the journal holds something unreadable")]
struct InvalidColumn(&'static str);

pub(super) fn mangled(column: &'static str) -> DbError {
    DbError::abort(InvalidColumn(column))
}
