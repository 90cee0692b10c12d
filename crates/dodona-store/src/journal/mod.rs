//! The journal: the append-only, durable log of items, events and decisions.
//!
//! Everything goes through one pump: it drains what is queued, merges neighbouring deltas,
//! numbers the items, commits all of it in one transaction, and only then shows it to readers.
//! While one transaction is being committed the next fills up, so the price of durability is
//! shared by whoever is writing at the time.
//!
//! A live stream keeps its newest items in a small ring; a reader that falls behind the ring
//! reads from the database. No reader, however slow, holds memory or holds up a writer.
//!
//! Bounds: queued entries hold permits for their bytes until they are committed, and a writer
//! waits for permits. Terminals take none, because they are written where nothing can wait (a
//! call that is dropped still gets its terminal); there are at most as many as calls.

mod call_record;
mod clock;
mod entry;
mod history;
mod live;
mod pump;
mod reader;
mod recovery;
mod retention;
mod schema;
mod writer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::{CallId, DoneStatus, ErrorCode, Event, ItemBody, StreamId};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot};
use tokio::time::Instant;

use crate::{Db, DbError, Durability, MigrateError, Store};
use entry::{Entry, Queued};
use live::LiveStream;

pub use crate::Redactor;
pub use call_record::{CallEnd, CallRecord};
pub use entry::{CallHead, DecisionRecord, DecisionRecordKind, StoredItem, StreamEnd, StreamHead};
pub use history::{EventFilter, ReadPosition, RecentEvents, RecordedEvent};
pub use reader::StreamReader;
pub use recovery::{InterruptedStream, Recovered};
pub use retention::{JournalSize, Pruned, Retention};
pub use writer::{ReservedEntry, StreamStart, StreamWriter};

/// The journal's own file.
const FILE: &str = "journal.db";

/// The journal's database and its newest schema version.
pub const SCHEMAS: &[(&str, usize)] = &[(FILE, schema::MIGRATIONS.len())];

/// How many events wait for a subscriber before the oldest are dropped for it.
const EVENT_BACKLOG: usize = 1024;

/// After how many bytes those that wait for growth are woken.
const GROWTH_NOTICE: u64 = 64 << 10;

/// Why a request to the journal failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal could not be opened.
    #[error("failed to open the journal")]
    Open(#[source] Arc<MigrateError>),
    /// A read or write of the database failed.
    #[error("journal database error")]
    Database(#[from] DbError),
    /// An entry exceeds the size limit.
    #[error("an item of {size} bytes exceeds the limit of {limit} bytes for a journal entry")]
    TooLarge {
        /// Size of the entry in bytes.
        size: usize,
        limit: usize,
    },
    /// An earlier item of this stream could not be stored, so nothing may follow it.
    #[error("failed to store an earlier item of this stream")]
    StreamFailed,
    /// The beginning of this call could not be stored, so its end is no record of it.
    #[error("failed to store the start of this call")]
    CallLost,
    /// The journal is closed: the server is stopping.
    #[error("the journal is closed")]
    Closed,
}

/// Receives the result of an entry's commit.
type Committed = oneshot::Receiver<Result<(), JournalError>>;

/// Limits of queues and buffers.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// Maximum bytes of entries that wait for a commit.
    pub queue_bytes: usize,
    /// Maximum bytes of one entry.
    pub entry_bytes: usize,
    /// Maximum number of items of a running stream kept in memory for its readers.
    pub ring_items: usize,
    /// Maximum bytes of these items.
    pub ring_bytes: usize,
    /// Redacts secrets before entries are stored.
    pub redactor: Redactor,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            queue_bytes: 16 << 20,
            entry_bytes: 4 << 20,
            ring_items: 256,
            ring_bytes: 256 << 10,
            redactor: Redactor::default(),
        }
    }
}

/// The journal. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    queue: mpsc::UnboundedSender<Queued>,
    permits: Arc<Semaphore>,
    live: Arc<Mutex<HashMap<StreamId, Arc<LiveStream>>>>,
    events: broadcast::Sender<Arc<Event>>,
    options: JournalOptions,
    recovered: Recovered,
    interrupted: Vec<InterruptedStream>,
    /// When the clock was read last, and what it was worth.
    clock: tokio::sync::Mutex<Instant>,
    trusted_ms: AtomicI64,
    growth: Arc<Growth>,
}

/// Bytes of entries since the journal was pruned last. Waiting for them does not keep the journal
/// open.
#[derive(Debug, Default)]
pub struct Growth {
    bytes: AtomicU64,
    grown: Notify,
}

impl Growth {
    /// Waits until about this many bytes were journaled since the last pruning.
    pub async fn reached(&self, bytes: u64) {
        loop {
            let notified = self.grown.notified();
            if self.bytes.load(Ordering::Relaxed) >= bytes {
                return;
            }
            notified.await;
        }
    }

    fn add(&self, size: u64) {
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        // Woken now and then only: this is on the path of every item.
        if before / GROWTH_NOTICE != (before + size) / GROWTH_NOTICE {
            self.grown.notify_waiters();
        }
    }
}

impl Journal {
    /// Opens the journal of a store, closes what an earlier process left open, and starts the
    /// pump on the current runtime.
    pub async fn open(store: &Store, options: JournalOptions) -> Result<Self, JournalError> {
        let db = store.database(FILE, Durability::Full);
        db.migrate(schema::MIGRATIONS)
            .await
            .map_err(|error| JournalError::Open(Arc::new(error)))?;
        let trusted_ms = clock::start(&db).await?;
        let (recovered, interrupted) = recovery::close_interrupted(&db).await?;
        let (queue, entries) = mpsc::unbounded_channel();
        let (events, _) = broadcast::channel(EVENT_BACKLOG);
        let live = Arc::new(Mutex::new(HashMap::new()));
        let next_stream = db
            .read(|tx| tx.query_one(schema::NEXT_STREAM, (), |row| row.get(0)))
            .await?;
        let pump = pump::Pump::new(db.clone(), Arc::clone(&live), events.clone(), next_stream);
        tokio::spawn(pump.run(entries));
        let permits = Arc::new(Semaphore::new(options.queue_bytes));
        Ok(Self {
            inner: Arc::new(Inner {
                db,
                queue,
                permits,
                live,
                events,
                options,
                recovered,
                interrupted,
                clock: tokio::sync::Mutex::new(Instant::now()),
                trusted_ms: AtomicI64::new(trusted_ms),
                growth: Arc::default(),
            }),
        })
    }

    /// What was found open when the journal was opened, and closed.
    pub fn recovered(&self) -> Recovered {
        self.inner.recovered
    }

    /// The streams that were found open when the journal was opened, oldest first.
    pub fn interrupted(&self) -> &[InterruptedStream] {
        &self.inner.interrupted
    }

    /// Completes one of them with its last item: the plugin that wrote it had stored the result
    /// when the process ended. False where it is not one of them, or complete already.
    pub async fn complete_interrupted(
        &self,
        stream: StreamId,
        content_type: &str,
        mut data: Value,
    ) -> Result<bool, JournalError> {
        if !self
            .inner
            .interrupted
            .iter()
            .any(|known| known.stream == stream)
        {
            return Ok(false);
        }
        self.redact(&mut data);
        let body = ItemBody::Data {
            content_type: content_type.to_owned().into(),
            data,
        };
        let body = serde_json::to_string(&body).map_err(DbError::abort)?;
        Ok(recovery::complete(&self.inner.db, stream, body).await?)
    }

    /// Begins a stream. Returns once that is queued: items may follow at once, and the id may be
    /// handed out when [`StreamStart`] says so, because then it is known after any crash.
    pub async fn begin_stream(
        &self,
        mut head: StreamHead,
    ) -> Result<(StreamWriter, StreamStart), JournalError> {
        self.inner.options.redactor.value(&mut head.params);
        let options = &self.inner.options;
        let live = Arc::new(LiveStream::new(
            head.stream,
            options.ring_items,
            options.ring_bytes,
        ));
        let params = head.params.to_string();
        let permit = self.room(params.len()).await?;
        let began = Entry::Begin {
            head: Box::new(head),
            params,
            live: Arc::clone(&live),
        };
        let committed = self.push_and_ask(began, permit);
        Ok((
            StreamWriter::new(self.clone(), live),
            StreamStart(committed),
        ))
    }

    /// Notes that a call of a mutating method began. Returns once it is queued.
    pub async fn begin_call(&self, mut head: CallHead) -> Result<(), JournalError> {
        self.inner.options.redactor.value(&mut head.params);
        let params = head.params.to_string();
        let size = params.len();
        self.queue(
            Entry::CallBegan {
                head: Box::new(head),
                params,
            },
            size,
        )
        .await
    }

    /// Notes how such a call ended. Returns once that is committed.
    pub async fn end_call(
        &self,
        call: CallId,
        status: DoneStatus,
        code: Option<ErrorCode>,
    ) -> Result<(), JournalError> {
        self.commit(Entry::CallEnded { call, status, code }, 0)
            .await
    }

    /// As [`Journal::end_call`], for a call that was dropped: nobody waits for the commit.
    pub fn end_dropped_call(&self, call: CallId) {
        let entry = Entry::CallEnded {
            call,
            status: DoneStatus::Cancelled,
            code: Some(ErrorCode::Cancelled),
        };
        self.push(Queued::new(entry));
    }

    /// Journals an event; the pump tells the subscribers once it is committed. Returns once it
    /// is queued. An event whose id already exists is not stored again.
    pub async fn publish(&self, mut event: Event) -> Result<(), JournalError> {
        self.inner.options.redactor.value(&mut event.payload);
        let body = event.payload.to_string();
        let size = body.len();
        let event = Arc::new(event);
        self.queue_waiting(Entry::Event { event, body }, size).await
    }

    /// Everything published from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.inner.events.subscribe()
    }

    /// Journals the input of a trigger or a decision. Returns once it is queued.
    pub async fn note(&self, mut decided: DecisionRecord) -> Result<(), JournalError> {
        self.inner.options.redactor.value(&mut decided.body);
        let body = decided.body.to_string();
        let size = body.len();
        let decided = Box::new(decided);
        self.queue_waiting(Entry::DecisionRecord { decided, body }, size)
            .await
    }

    /// A reader of a stream from after item `after`; `None` when there is no such stream.
    pub async fn reader(
        &self,
        stream: StreamId,
        after: u64,
    ) -> Result<Option<StreamReader>, JournalError> {
        // Asked in this order, a stream that ends in between is found in the database.
        let live = self.live(stream);
        match self.head(stream).await? {
            Some((_, end)) => Ok(Some(StreamReader::new(
                self.inner.db.clone(),
                stream,
                live,
                end.is_some(),
                after,
            ))),
            None => Ok(None),
        }
    }

    /// What is known of a stream, and how it ended if it did.
    pub async fn head(
        &self,
        stream: StreamId,
    ) -> Result<Option<(StreamHead, Option<StreamEnd>)>, JournalError> {
        let id = stream.to_string();
        Ok(self
            .inner
            .db
            .read(move |tx| tx.query_opt(schema::STREAM_HEAD, (id.as_str(),), entry::read_head))
            .await?)
    }

    /// At most `limit` items of a stream from after item `after`, as far as they are committed.
    pub async fn page(
        &self,
        stream: StreamId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Arc<StoredItem>>, JournalError> {
        Ok(reader::read_page(&self.inner.db, stream, after, limit).await?)
    }

    /// Events of the newest `limit`, oldest first, whose type is `prefix` or lies below it.
    pub async fn recent_events(
        &self,
        prefix: &str,
        limit: u32,
    ) -> Result<Vec<Event>, JournalError> {
        let (exact, below) = (prefix.to_owned(), format!("{}.", prefix));
        let mut events = self
            .inner
            .db
            .read(move |tx| {
                tx.query(
                    schema::RECENT_EVENTS,
                    (exact.as_str(), below.as_str(), limit),
                    entry::read_event,
                )
            })
            .await?;
        events.reverse();
        Ok(events)
    }

    /// A page of events, as far as they are committed, from a place on: oldest first when reading
    /// forwards, newest first backwards. Bounded in rows and bytes; an empty one is the last.
    pub async fn events_from(
        &self,
        filter: EventFilter,
        place: ReadPosition,
    ) -> Result<Vec<RecordedEvent>, JournalError> {
        Ok(history::page(&self.inner.db, filter, place).await?)
    }

    /// The newest `limit` of a user's events, the newest first, whose type is `below` or lies below
    /// it; an empty one is every type. Of the filter, the user and the project count.
    pub async fn recent_of(
        &self,
        filter: EventFilter,
        below: &str,
        limit: u32,
    ) -> Result<RecentEvents, JournalError> {
        Ok(history::recent(&self.inner.db, filter, below.to_owned(), limit).await?)
    }

    /// The newest `limit` calls of mutating methods, oldest first.
    pub async fn recent_calls(&self, limit: u32) -> Result<Vec<CallRecord>, JournalError> {
        let mut calls = self
            .inner
            .db
            .read(move |tx| tx.query(schema::RECENT_CALLS, (limit,), call_record::read))
            .await?;
        calls.reverse();
        Ok(calls)
    }

    /// How a call of a mutating method ended. `None` if the journal has no end of it.
    pub async fn call_status(&self, call: CallId) -> Result<Option<DoneStatus>, JournalError> {
        let call = call.to_string();
        let status: Option<String> = self
            .inner
            .db
            .read(move |tx| tx.query_opt(schema::CALL_STATUS, (call.as_str(),), |row| row.get(0)))
            .await?;
        Ok(status.and_then(|text| serde_json::from_value(Value::String(text)).ok()))
    }

    /// Removes what `retention` no longer keeps: entries that are too old, and then the oldest ones
    /// until the rest fits. Where the system's clock is far ahead of the last run, nothing is removed
    /// because of its age.
    pub async fn prune(&self, retention: Retention) -> Result<Pruned, JournalError> {
        let inner = &self.inner;
        inner.growth.bytes.store(0, Ordering::Relaxed);
        let mut read_at = inner.clock.lock().await;
        let reading = clock::read(&inner.db, read_at.elapsed()).await?;
        *read_at = Instant::now();
        inner
            .trusted_ms
            .store(reading.trusted_ms, Ordering::Relaxed);
        if let Some(days) = reading.days_ahead {
            tracing::warn!(
                days,
                "the system clock is ahead of the last run; nothing is deleted because of its age \
                 until the clock has been used for some days"
            );
        }
        Ok(retention::prune(&inner.db, retention, reading.trusted_ms).await?)
    }

    /// How much was journaled since the last pruning.
    pub fn growth(&self) -> Arc<Growth> {
        Arc::clone(&self.inner.growth)
    }

    /// The time by which ages count: the system's, unless it is far ahead of the last run.
    pub fn trusted_now(&self) -> Timestamp {
        let now = Timestamp::now();
        let trusted = self.inner.trusted_ms.load(Ordering::Relaxed);
        Timestamp::from_millisecond(trusted).map_or(now, |trusted| trusted.min(now))
    }

    /// How much it holds; that reads all of it.
    pub async fn held(&self) -> Result<JournalSize, JournalError> {
        Ok(retention::held(&self.inner.db).await?)
    }

    /// Waits until everything queued so far is committed.
    pub async fn flush(&self) -> Result<(), JournalError> {
        self.commit(Entry::Flush, 0).await
    }

    /// Bytes of entries that wait for their commit.
    pub fn backlog(&self) -> usize {
        self.inner.options.queue_bytes - self.inner.permits.available_permits()
    }

    fn live(&self, stream: StreamId) -> Option<Arc<LiveStream>> {
        self.inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&stream)
            .cloned()
    }

    /// Queues an entry once there is room for its bytes.
    async fn queue(&self, entry: Entry, size: usize) -> Result<(), JournalError> {
        let mut queued = Queued::new(entry);
        queued.permit = self.room(size).await?;
        self.push(queued);
        Ok(())
    }

    /// The same for one that can wait for others to share its commit.
    async fn queue_waiting(&self, entry: Entry, size: usize) -> Result<(), JournalError> {
        let permit = self.room(size).await?;
        self.push(Queued {
            permit,
            can_wait: true,
            ..Queued::new(entry)
        });
        Ok(())
    }

    /// Queues an entry and waits for its commit.
    async fn commit(&self, entry: Entry, size: usize) -> Result<(), JournalError> {
        let permit = self.room(size).await?;
        let committed = self.push_and_ask(entry, permit);
        committed.await.unwrap_or(Err(JournalError::Closed))
    }

    fn push_and_ask(&self, entry: Entry, permit: Option<OwnedSemaphorePermit>) -> Committed {
        let (done, committed) = oneshot::channel();
        let mut queued = Queued::new(entry);
        queued.permit = permit;
        queued.ack = Some(done);
        self.push(queued);
        committed
    }

    async fn room(&self, size: usize) -> Result<Option<OwnedSemaphorePermit>, JournalError> {
        if size == 0 {
            // Nor does it wait: whoever is dropped here would leave no trace.
            return Ok(None);
        }
        let limit = self.inner.options.entry_bytes;
        if size > limit {
            return Err(JournalError::TooLarge { size, limit });
        }
        self.inner.growth.add(size as u64 + 64);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.inner.permits)
            .acquire_many_owned(size)
            .await;
        permit.map(Some).map_err(|_| JournalError::Closed)
    }

    fn push(&self, queued: Queued) {
        // Fails only after the pump has ended with the runtime; whoever waits for the commit
        // learns it from the dropped acknowledgement.
        let _ = self.inner.queue.send(queued);
    }

    pub(self) fn redact(&self, value: &mut Value) {
        self.inner.options.redactor.value(value);
    }

    pub(self) fn redact_text(&self, text: &mut String) {
        self.inner.options.redactor.text(text);
    }
}
