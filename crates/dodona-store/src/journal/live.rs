//! A running stream.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::StreamId;
use tokio::sync::watch;

use super::entry::StoredItem;

/// Progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// The newest committed item.
    pub(super) seq: u64,
    pub(super) state: TailState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TailState {
    Open,
    /// Its terminal is committed.
    Ended,
    /// An item could not be stored. It stays so: nothing may follow, and the terminals are read
    /// from the database.
    Failed,
}

/// State shared by the writers, the readers and the journal task of one stream.
pub(super) struct LiveStream {
    pub(super) id: StreamId,
    /// The stream's row; set by the pump with the row.
    no: AtomicI64,
    /// The number of the next item. Only the pump touches it.
    next_seq: AtomicU64,
    ring: Mutex<Ring>,
    tail: watch::Sender<Tail>,
}

/// The newest committed items, bounded in number and bytes.
struct Ring {
    items: VecDeque<Arc<StoredItem>>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
}

impl LiveStream {
    pub(super) fn new(id: StreamId, max_items: usize, max_bytes: usize) -> Self {
        Self {
            id,
            no: AtomicI64::new(0),
            next_seq: AtomicU64::new(1),
            ring: Mutex::new(Ring {
                items: VecDeque::new(),
                bytes: 0,
                max_items,
                max_bytes,
            }),
            tail: watch::Sender::new(Tail {
                seq: 0,
                state: TailState::Open,
            }),
        }
    }

    pub(super) fn no(&self) -> i64 {
        self.no.load(Ordering::Relaxed)
    }

    pub(super) fn set_no(&self, no: i64) {
        self.no.store(no, Ordering::Relaxed);
    }

    /// Assigns the next item number.
    pub(super) fn number(&self) -> u64 {
        self.next_seq.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn watch(&self) -> watch::Receiver<Tail> {
        self.tail.subscribe()
    }

    pub(super) fn state(&self) -> TailState {
        self.tail.borrow().state
    }

    /// Keeps a committed item for the readers. Wake them with [`LiveStream::announce`].
    pub(super) fn keep(&self, item: Arc<StoredItem>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.bytes += item.body.len();
        ring.items.push_back(item);
        while ring.items.len() > 1
            && (ring.items.len() > ring.max_items || ring.bytes > ring.max_bytes)
        {
            if let Some(oldest) = ring.items.pop_front() {
                ring.bytes -= oldest.body.len();
            }
        }
    }

    /// Wakes the readers with the new progress.
    pub(super) fn announce(&self, tail: Tail) {
        self.tail.send_replace(tail);
    }

    /// Wakes writers and readers because an item could not be stored.
    pub(super) fn fail(&self) {
        self.tail.send_modify(|tail| tail.state = TailState::Failed);
    }

    /// The items after `after` that are committed up to `until`, at most `limit`; `None` when
    /// the ring no longer reaches that far back.
    pub(super) fn after(
        &self,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Option<Vec<Arc<StoredItem>>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ring.items.front()?.seq;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(
            ring.items
                .iter()
                .skip(skip)
                .take_while(|item| item.seq <= until)
                .take(limit)
                .cloned()
                .collect(),
        )
    }
}
