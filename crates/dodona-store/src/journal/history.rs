//! Reading recorded events page by page.

use dodona_proto::{CallId, Event, ProjectId, Severity, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use super::entry::{causes, mangled, moment, word};
use super::schema;
use crate::{Db, DbError, Row, Tx};

/// Maximum number of events per page.
const PAGE_ROWS: u32 = 2_048;

/// Maximum payload bytes per page. A larger event is a page of its own.
const PAGE_BYTES: usize = 4 << 20;

/// A filter for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this user.
    pub user: UserId,
    /// Only events of this project. `None` means all events, with or without a project.
    pub project: Option<ProjectId>,
    /// Only events of these types. Empty means all.
    pub kinds: Vec<String>,
    /// Only events at or after this time.
    pub since: Option<Timestamp>,
    /// Only events at or before this time.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    /// All events of a user.
    pub fn of(user: UserId) -> Self {
        Self {
            user,
            project: None,
            kinds: Vec::new(),
            since: None,
            until: None,
        }
    }
}

/// Where and in which direction to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPosition {
    /// From the oldest event, forwards.
    Beginning,
    /// After an event, forwards.
    After(u64),
    /// From the newest event, backwards.
    End,
    /// Before an event, backwards.
    Before(u64),
}

/// A recorded event. Its payload is unparsed JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Position in the journal; increases with time.
    pub position: u64,
    pub id: Uuid,
    /// The type, with dots.
    pub kind: String,
    /// The plugin that published it.
    pub source: String,
    pub severity: Severity,
    pub timestamp: Timestamp,
    pub user: Option<UserId>,
    pub project: Option<ProjectId>,
    pub call: Option<CallId>,
    /// The payload as JSON text.
    pub payload: Box<str>,
    /// Types of the events that caused it, oldest first.
    pub causes: Vec<String>,
}

impl RecordedEvent {
    /// Parses the payload.
    ///
    /// # Errors
    ///
    /// If the payload is no JSON, which this version never writes.
    pub fn to_event(&self) -> Result<Event, serde_json::Error> {
        Ok(Event {
            id: self.id,
            kind: self.kind.clone(),
            source: self.source.clone(),
            severity: self.severity,
            payload: serde_json::from_str(&self.payload)?,
            timestamp: self.timestamp,
            user: self.user.clone(),
            project: self.project.clone(),
            call: self.call,
            causes: self.causes.clone(),
        })
    }
}

/// One page, from a place on. It is empty when there is nothing more.
pub(super) async fn page(
    db: &Db,
    filter: EventFilter,
    place: ReadPosition,
) -> Result<Vec<RecordedEvent>, DbError> {
    db.read(move |tx| read(tx, &filter, place)).await
}

fn read(
    tx: &Tx<'_>,
    filter: &EventFilter,
    place: ReadPosition,
) -> Result<Vec<RecordedEvent>, DbError> {
    let millis = |time: Option<Timestamp>, none: i64| time.map_or(none, Timestamp::as_millisecond);
    let since = millis(filter.since, i64::MIN);
    let (sql, from) = match place {
        // The first row that is young enough: from there on rows are read in their own order.
        ReadPosition::Beginning if filter.since.is_some() => {
            (schema::EVENTS_FORWARDS, first(tx, since)?)
        }
        ReadPosition::Beginning => (schema::EVENTS_FORWARDS, -1),
        ReadPosition::After(position) => (schema::EVENTS_FORWARDS, number(position)),
        ReadPosition::End => (schema::EVENTS_BACKWARDS, i64::MAX),
        ReadPosition::Before(position) => (schema::EVENTS_BACKWARDS, number(position)),
    };
    let kinds = match filter.kinds.is_empty() {
        true => String::new(),
        // Types have no comma.
        false => format!(",{},", filter.kinds.join(",")),
    };
    let project = filter.project.as_ref().map(ToString::to_string);
    let mut bytes = 0;
    let rows = tx.query(
        sql,
        (
            from,
            filter.user.as_str(),
            project,
            kinds,
            since,
            millis(filter.until, i64::MAX),
            PAGE_ROWS,
        ),
        |row| {
            // What does not fit the page is not copied, and read again with the next one.
            let fits = bytes < PAGE_BYTES;
            bytes += row.text(9)?.len();
            fits.then(|| recorded(row)).transpose()
        },
    )?;
    Ok(rows.into_iter().map_while(|row| row).collect())
}

/// The newest events of a type and its subtypes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentEvents {
    pub events: Vec<RecordedEvent>,
    /// Whether there are older events that were left out.
    pub more: bool,
}

/// The newest `limit` of a user's events whose type is `below` or lies below it; an empty one is
/// every type. Bounded in bytes as well.
pub(super) async fn recent(
    db: &Db,
    filter: EventFilter,
    below: String,
    limit: u32,
) -> Result<RecentEvents, DbError> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut events = if below.is_empty() {
        page(db, filter, ReadPosition::End).await?
    } else {
        db.read(move |tx| newest(tx, &filter, &below, limit.saturating_add(1)))
            .await?
    };
    let more = events.len() > most || is_full(&events);
    events.truncate(most);
    Ok(RecentEvents { events, more })
}

fn newest(
    tx: &Tx<'_>,
    filter: &EventFilter,
    below: &str,
    limit: u32,
) -> Result<Vec<RecordedEvent>, DbError> {
    let project = filter.project.as_ref().map(ToString::to_string);
    let mut bytes = 0;
    let values = (below, filter.user.as_str(), project, limit);
    let rows = tx.query(schema::EVENTS_BELOW, values, |row| {
        let fits = bytes < PAGE_BYTES;
        bytes += row.text(9)?.len();
        fits.then(|| recorded(row)).transpose()
    })?;
    Ok(rows.into_iter().map_while(|row| row).collect())
}

/// Whether a page may have ended for its size.
fn is_full(events: &[RecordedEvent]) -> bool {
    let bytes: usize = events.iter().map(|event| event.payload.len()).sum();
    bytes >= PAGE_BYTES
}

/// The place before the first record of a time or later.
fn first(tx: &Tx<'_>, since: i64) -> Result<i64, DbError> {
    let found: Option<i64> = tx.query_one(schema::FIRST_SINCE, (since,), |row| row.get(0))?;
    Ok(found.map_or(i64::MAX, |no| no - 1))
}

/// A place as a column has it: there is nothing beyond what it can hold.
fn number(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn recorded(row: &Row<'_>) -> Result<RecordedEvent, DbError> {
    let optional = |index: usize| row.get::<Option<String>>(index);
    Ok(RecordedEvent {
        position: row.get(0)?,
        kind: row.get(1)?,
        source: row.get(2)?,
        severity: match optional(3)? {
            Some(text) => word(&text, "records.severity")?,
            None => Severity::Info,
        },
        id: row
            .text(4)?
            .parse()
            .map_err(|_| mangled("records.event_id"))?,
        user: parsed(optional(5)?, "records.user_id")?,
        project: parsed(optional(6)?, "records.project_id")?,
        call: parsed(optional(7)?, "records.call_id")?,
        timestamp: moment(row.get(8)?)?,
        payload: row.text(9)?.into(),
        causes: causes(optional(10)?),
    })
}

fn parsed<T: std::str::FromStr>(
    text: Option<String>,
    column: &'static str,
) -> Result<Option<T>, DbError> {
    let parse = |text: String| text.parse().map_err(|_| mangled(column));
    text.map(parse).transpose()
}
