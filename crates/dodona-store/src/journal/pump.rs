//! The task that writes the journal.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dodona_proto::{CallId, DoneStatus, Event, PluginPath, StreamId};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, oneshot};
use tokio::time::Instant;

use super::entry::{
    Body, CallHead, DecisionRecord, Entry, Queued, StoredItem, StreamHead, call_suffix,
    kind_number, word_of,
};
use super::live::{LiveStream, Tail, TailState};
use super::{JournalError, recovery, schema};
use crate::{Db, DbError, Tx};

/// Maximum number of entries per transaction.
const BATCH: usize = 1024;

/// How long an entry waits to share a commit with later ones: long enough for an immediate successor, too short
/// to be noticed.
const LINGER: Duration = Duration::from_millis(5);

/// The reason of a stream that ends because an item could not be stored.
const LOST_AN_ITEM: &str = "failed to store an item of the stream";

/// Delay before `Done` items that could not be stored are tried again.
const RETRY: Duration = Duration::from_secs(1);

type Ack = oneshot::Sender<Result<(), JournalError>>;

pub(super) struct Pump {
    db: Db,
    live: Arc<Mutex<HashMap<StreamId, Arc<LiveStream>>>>,
    events: broadcast::Sender<Arc<Event>>,
    next_stream: i64,
    /// Streams of which an item could not be stored, and the path of their root. Their terminals
    /// are written as soon as the database takes something again.
    failed: Vec<(Arc<LiveStream>, PluginPath)>,
    /// Running calls of mutating methods whose beginning could not be stored: their end must not
    /// pass for a record of them.
    lost: HashSet<CallId>,
}

/// The rows of one transaction.
enum Row {
    Begin {
        no: i64,
        head: Box<StreamHead>,
        params: String,
        live: Arc<LiveStream>,
    },
    Item {
        live: Arc<LiveStream>,
        item: Arc<StoredItem>,
        end: Option<(DoneStatus, Option<String>)>,
    },
    /// The `Done` items of a stream that lost an item.
    Close {
        live: Arc<LiveStream>,
        root: PluginPath,
    },
    CallBegan {
        head: Box<CallHead>,
        params: String,
    },
    CallEnded {
        call: CallId,
        status: DoneStatus,
        code: Option<String>,
    },
    Event {
        event: Arc<Event>,
        body: String,
    },
    DecisionRecord {
        decided: Box<DecisionRecord>,
        body: String,
    },
}

/// The entries of one transaction, with the callers that wait for them.
#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    acks: Vec<Ack>,
    permits: Vec<OwnedSemaphorePermit>,
}

impl Pump {
    pub(super) fn new(
        db: Db,
        live: Arc<Mutex<HashMap<StreamId, Arc<LiveStream>>>>,
        events: broadcast::Sender<Arc<Event>>,
        next_stream: i64,
    ) -> Self {
        Self {
            db,
            live,
            events,
            next_stream,
            failed: Vec::new(),
            lost: HashSet::new(),
        }
    }

    /// Runs until all handles of the journal are dropped.
    pub(super) async fn run(mut self, mut entries: mpsc::UnboundedReceiver<Queued>) {
        let mut drained = Vec::with_capacity(BATCH);
        while self.drain(&mut entries, &mut drained).await {
            linger(&mut entries, &mut drained).await;
            let batch = self.prepare(&mut drained);
            self.commit(batch).await;
        }
    }

    /// Waits for entries, or for the time to try again to store terminals; false at the end.
    async fn drain(
        &self,
        entries: &mut mpsc::UnboundedReceiver<Queued>,
        drained: &mut Vec<Queued>,
    ) -> bool {
        let some = entries.recv_many(drained, BATCH);
        if self.failed.is_empty() {
            return some.await > 0;
        }
        let patience = tokio::time::timeout(RETRY, some).await;
        patience.is_err() || !drained.is_empty()
    }

    /// Merges deltas, numbers the items and writes the batch.
    fn prepare(&mut self, drained: &mut Vec<Queued>) -> Batch {
        let mut batch = Batch::default();
        for Queued {
            entry,
            permit,
            mut ack,
            ..
        } in merge_deltas(drained)
        {
            batch.permits.extend(permit);
            if let Entry::CallEnded { call, .. } = &entry
                && self.lost.remove(call)
            {
                answer(ack.take(), Err(JournalError::CallLost));
            }
            match self.row(entry) {
                Ok(row) => {
                    batch.acks.extend(ack);
                    batch.rows.extend(row);
                }
                Err(error) => answer(ack, Err(error)),
            }
        }
        let closing = self.failed.iter().map(|(live, root)| Row::Close {
            live: Arc::clone(live),
            root: root.clone(),
        });
        batch.rows.extend(closing);
        batch
    }

    fn row(&mut self, entry: Entry) -> Result<Option<Row>, JournalError> {
        Ok(Some(match entry {
            Entry::Flush => return Ok(None),
            Entry::Begin { head, params, live } => {
                let no = self.next_stream;
                self.next_stream += 1;
                live.set_no(no);
                Row::Begin {
                    no,
                    head,
                    params,
                    live,
                }
            }
            Entry::Item { live, .. } if live.state() != TailState::Open => {
                return Err(JournalError::StreamFailed);
            }
            Entry::Item {
                live,
                call,
                path,
                body,
            } => item_row(live, call, path, body),
            Entry::CallBegan { head, params } => Row::CallBegan { head, params },
            Entry::CallEnded { call, status, code } => Row::CallEnded {
                call,
                status,
                code: code.map(Into::into),
            },
            Entry::Event { event, body } => Row::Event { event, body },
            Entry::DecisionRecord { decided, body } => Row::DecisionRecord { decided, body },
        }))
    }

    async fn commit(&mut self, batch: Batch) {
        let Batch {
            rows,
            acks,
            permits,
        } = batch;
        let rows = Arc::new(rows);
        let written = if rows.is_empty() {
            Ok(())
        } else {
            let rows = Arc::clone(&rows);
            self.db.write(move |tx| write(tx, &rows)).await
        };
        match &written {
            Ok(()) => self.publish(&rows),
            Err(error) => self.give_up(&rows, error),
        }
        drop(permits);
        for ack in acks {
            answer(Some(ack), written.clone().map_err(JournalError::from));
        }
    }

    /// Delivers committed items and events to readers and subscribers.
    fn publish(&mut self, rows: &[Row]) {
        // Their terminals were among the rows.
        self.failed.clear();
        metrics::counter!("dodona_journal_commits_total").increment(1);
        metrics::counter!("dodona_journal_entries_total").increment(rows.len() as u64);
        let mut tails: Vec<(&Arc<LiveStream>, Tail)> = Vec::new();
        for row in rows {
            match row {
                Row::Begin { live, .. } => {
                    self.streams().insert(live.id, Arc::clone(live));
                }
                Row::Item { live, item, .. } => {
                    live.keep(Arc::clone(item));
                    let state = if item.ends_stream() {
                        TailState::Ended
                    } else {
                        TailState::Open
                    };
                    let tail = Tail {
                        seq: item.seq,
                        state,
                    };
                    match tails
                        .iter_mut()
                        .rev()
                        .find(|(known, _)| Arc::ptr_eq(known, live))
                    {
                        Some((_, newest)) => *newest = tail,
                        None => tails.push((live, tail)),
                    }
                }
                Row::Event { event, .. } => {
                    // An error means that there are no subscribers.
                    let _ = self.events.send(Arc::clone(event));
                }
                Row::Close { live, .. } => {
                    self.streams().remove(&live.id);
                }
                Row::CallBegan { .. } | Row::CallEnded { .. } | Row::DecisionRecord { .. } => {}
            }
        }
        for (live, tail) in tails {
            if tail.state == TailState::Ended {
                self.streams().remove(&live.id);
            }
            live.announce(tail);
        }
    }

    /// Ends the streams that lost an item. Other streams are not affected.
    fn give_up(&mut self, rows: &[Row], error: &DbError) {
        metrics::counter!("dodona_journal_failures_total").increment(1);
        tracing::error!(%error, entries = rows.len(), "failed to store a batch of journal entries");
        for row in rows {
            match row {
                Row::Begin { head, live, .. } => self.fail(live, head.method.plugin()),
                Row::Item { live, item, .. } => {
                    self.fail(live, item.path.segments().next().unwrap_or_default());
                }
                Row::CallBegan { head, .. } => {
                    self.lost.insert(head.call);
                }
                Row::CallEnded { call, .. } => {
                    // Where both are of this batch, the end is answered for both.
                    self.lost.remove(call);
                }
                Row::Close { .. } | Row::Event { .. } | Row::DecisionRecord { .. } => {}
            }
        }
    }

    /// Rejects further items of a stream, except its `Done` items.
    fn fail(&mut self, live: &Arc<LiveStream>, plugin: &str) {
        if live.state() != TailState::Failed {
            live.fail();
            let root = plugin.parse().expect("a plugin's name is a path of one");
            self.failed.push((Arc::clone(live), root));
        }
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, HashMap<StreamId, Arc<LiveStream>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where nobody waits for any of the entries, lets them share the commit of what follows soon: a
/// commit that is under way holds up the one that somebody waits for.
async fn linger(entries: &mut mpsc::UnboundedReceiver<Queued>, drained: &mut Vec<Queued>) {
    let until = Instant::now() + LINGER;
    let mut looked_at = 0;
    while looked_at < drained.len()
        && drained.len() < BATCH
        && drained[looked_at..].iter().all(|queued| queued.can_wait)
    {
        looked_at = drained.len();
        let more = entries.recv_many(drained, BATCH - looked_at);
        // An error is the timeout.
        let _ = tokio::time::timeout_at(until, more).await;
    }
}

fn answer(ack: Option<Ack>, outcome: Result<(), JournalError>) {
    if let Some(ack) = ack {
        // The caller may have stopped waiting.
        let _ = ack.send(outcome);
    }
}

/// Joins each delta to the one before it in the same stream, if both are of one call and type:
/// a burst of tokens becomes one row. Only neighbours within a stream, so order is kept.
fn merge_deltas(drained: &mut Vec<Queued>) -> Vec<Queued> {
    let mut newest: HashMap<StreamId, usize> = HashMap::new();
    let mut merged: Vec<Queued> = Vec::with_capacity(drained.len());
    for queued in drained.drain(..) {
        let Entry::Item { live, .. } = &queued.entry else {
            merged.push(queued);
            continue;
        };
        let stream = live.id;
        let before = newest.get(&stream).and_then(|&at| merged.get_mut(at));
        if let Some(separate) = join(before, queued) {
            newest.insert(stream, merged.len());
            merged.push(separate);
        }
    }
    merged
}

/// Adds a delta to the entry before it; gives it back when it has to stand alone.
fn join(before: Option<&mut Queued>, queued: Queued) -> Option<Queued> {
    let Some(Queued {
        entry:
            Entry::Item {
                call,
                body: Body::Delta { content_type, text },
                ..
            },
        permit,
        ..
    }) = before
    else {
        return Some(queued);
    };
    match queued.entry {
        Entry::Item {
            call: same_call,
            body:
                Body::Delta {
                    content_type: ref same_type,
                    text: ref more,
                },
            ..
        } if same_call == *call && same_type == content_type => {
            text.push_str(more);
            match (permit, queued.permit) {
                (Some(permit), Some(more)) => permit.merge(more),
                (none, more) => *none = more,
            }
            None
        }
        _ => Some(queued),
    }
}

fn item_row(live: Arc<LiveStream>, call: CallId, path: PluginPath, body: Body) -> Row {
    let kind = body.kind();
    let end = match &body {
        Body::Done { status, reason } if call.depth() == 0 => Some((*status, reason.clone())),
        _ => None,
    };
    let seq = live.number();
    let item = StoredItem {
        call_id: call,
        seq,
        path,
        kind,
        body: body.into_json().into(),
    };
    Row::Item {
        live,
        item: Arc::new(item),
        end,
    }
}

fn write(tx: &Tx<'_>, rows: &[Row]) -> Result<(), DbError> {
    let now = Timestamp::now().as_millisecond();
    for row in rows {
        match row {
            Row::Begin {
                no, head, params, ..
            } => begin_stream(tx, *no, head, params)?,
            Row::Item { live, item, end } => {
                let (call, kind) = (call_suffix(&item.call_id), kind_number(item.kind));
                let no = live.no();
                tx.execute(
                    schema::ADD_ITEM,
                    (
                        no,
                        item.seq,
                        call.as_str(),
                        item.path.as_str(),
                        kind,
                        &*item.body,
                        now,
                    ),
                )?;
                if let Some((status, reason)) = end {
                    tx.execute(
                        schema::END_STREAM,
                        (no, now, status.as_str(), reason.as_deref()),
                    )?;
                }
            }
            Row::Close { live, root } => {
                // What of it is stored is read again: a commit that failed may yet have happened.
                recovery::close_stream(tx, live.no(), live.id, root, LOST_AN_ITEM)?;
            }
            Row::CallBegan { head, params } => begin_call(tx, head, params)?,
            Row::CallEnded { call, status, code } => {
                let call = call.to_string();
                tx.execute(
                    schema::END_CALL,
                    (call.as_str(), now, status.as_str(), code.as_deref()),
                )?;
            }
            Row::Event { event, body } => add_event(tx, event, body)?,
            Row::DecisionRecord { decided, body } => add_decided(tx, decided, body)?,
        }
    }
    Ok(())
}

fn begin_stream(tx: &Tx<'_>, no: i64, head: &StreamHead, params: &str) -> Result<(), DbError> {
    let (id, surface) = (head.stream.to_string(), word_of(&head.surface));
    let project = head.project.as_ref().map(|id| id.as_str());
    let began = head.began.as_millisecond();
    let values = (
        no,
        id.as_str(),
        head.user.as_str(),
        project,
        surface.as_str(),
        head.method.as_str(),
        params,
        began,
    );
    tx.execute(schema::BEGIN_STREAM, values).map(drop)
}

fn begin_call(tx: &Tx<'_>, head: &CallHead, params: &str) -> Result<(), DbError> {
    let id = head.call.to_string();
    let project = head.project.as_ref().map(|id| id.as_str());
    let began = head.began.as_millisecond();
    let values = (
        id.as_str(),
        head.path.as_str(),
        head.method.as_str(),
        head.user.as_str(),
        project,
        params,
        began,
    );
    tx.execute(schema::BEGIN_CALL, values).map(drop)
}

fn add_event(tx: &Tx<'_>, event: &Event, body: &str) -> Result<(), DbError> {
    let (id, severity) = (event.id.to_string(), word_of(&event.severity));
    let user = event.user.as_ref().map(|id| id.as_str());
    let project = event.project.as_ref().map(|id| id.as_str());
    let call = event.call.map(|call| call.to_string());
    let causes = (!event.causes.is_empty()).then(|| event.causes.join(","));
    let values = (
        "event",
        event.kind.as_str(),
        event.source.as_str(),
        severity.as_str(),
        id.as_str(),
        user,
        project,
        call.as_deref(),
        event.timestamp.as_millisecond(),
        body,
        causes.as_deref(),
    );
    tx.execute(schema::ADD_RECORD, values).map(drop)
}

fn add_decided(tx: &Tx<'_>, decided: &DecisionRecord, body: &str) -> Result<(), DbError> {
    let user = decided.user.as_ref().map(|id| id.as_str());
    let project = decided.project.as_ref().map(|id| id.as_str());
    let call = decided.call.map(|call| call.to_string());
    let none = None::<&str>;
    let values = (
        decided.kind.as_str(),
        decided.name.as_str(),
        decided.source.as_str(),
        none,
        none,
        user,
        project,
        call.as_deref(),
        decided.at.as_millisecond(),
        body,
        none,
    );
    tx.execute(schema::ADD_RECORD, values).map(drop)
}
