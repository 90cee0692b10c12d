//! The running calls: one tree for each call from a surface.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dodona_proto::{CallError, CallId, ErrorCode, StreamId, UserId};
use dodona_store::journal::StreamWriter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::call::RunningCall;
use crate::dispatch::PARENT_ENDED;
use crate::reader_count::ReaderCount;

/// A root call with all calls nested in it.
pub(crate) struct CallTree {
    pub(crate) stream: StreamId,
    pub(crate) user: UserId,
    /// Journals the items of all calls. `None` for a call that only returns its result.
    pub(crate) writer: Option<StreamWriter>,
    /// Set together with `writer`.
    pub(crate) readers: Option<ReaderCount>,
    pub(crate) cancel: CancellationToken,
    cancel_reason: OnceLock<&'static str>,
    calls: Mutex<Vec<Arc<RunningCall>>>,
    /// Notified when a call of this tree ends.
    pub(crate) ended: Notify,
}

impl CallTree {
    /// A tree whose items are not journaled.
    pub(crate) fn unwatched(stream: StreamId, user: UserId) -> Self {
        Self {
            stream,
            user,
            writer: None,
            readers: None,
            cancel: CancellationToken::new(),
            cancel_reason: OnceLock::new(),
            calls: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// A tree whose items are journaled and can be read.
    pub(crate) fn watched(
        stream: StreamId,
        user: UserId,
        writer: StreamWriter,
        readers: ReaderCount,
    ) -> Self {
        Self {
            writer: Some(writer),
            readers: Some(readers),
            ..Self::unwatched(stream, user)
        }
    }

    /// Cancels all calls of the tree. Of several reasons the first counts.
    pub(crate) fn cancel(&self, reason: &'static str) {
        let _ = self.cancel_reason.set(reason);
        self.cancel.cancel();
    }

    pub(crate) fn cancel_reason(&self) -> &'static str {
        self.cancel_reason.get().copied().unwrap_or("cancelled")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RunningCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Fails if its parent is ending or the tree has more than `limit` nested calls.
    pub(crate) fn add(&self, call: Arc<RunningCall>, limit: u32) -> Result<(), CallError> {
        let mut calls = self.lock();
        if !call.has_open_parent() {
            return Err(CallError::new(ErrorCode::Cancelled, PARENT_ENDED));
        }
        if calls.len() > limit as usize {
            return Err(CallError::new(
                ErrorCode::TooManyCalls,
                format!("more than {limit} nested calls are running in one call tree"),
            ));
        }
        calls.push(call);
        Ok(())
    }

    /// Removes a call that has ended.
    pub(crate) fn remove(&self, id: &CallId) {
        let mut calls = self.lock();
        if let Some(index) = calls.iter().rposition(|call| call.info.call_id == *id) {
            calls.swap_remove(index).mark_removed();
        }
        drop(calls);
        self.ended.notify_waiters();
    }

    /// Rejects new calls below `id` from now on and returns those still running, the deepest first.
    pub(crate) fn close_below(&self, id: &CallId) -> Vec<Arc<RunningCall>> {
        let calls = self.lock();
        let within = calls.iter().filter(|call| call.info.call_id.is_within(id));
        let mut below: Vec<Arc<RunningCall>> = within
            .inspect(|call| call.close())
            .filter(|call| call.info.call_id != *id)
            .cloned()
            .collect();
        drop(calls);
        below.sort_by_key(|call| std::cmp::Reverse(call.info.call_id));
        below
    }

    pub(crate) fn running_calls(&self) -> Vec<Arc<RunningCall>> {
        self.lock().clone()
    }
}

/// Number of locks that share the trees. A root call takes one of them twice, briefly.
const SHARDS: usize = 16;

type TreesById = HashMap<StreamId, Arc<CallTree>, BuildHasherDefault<RandomIdHasher>>;

/// Hashes an id by its last eight bytes. Stream ids are random, so a real hash adds nothing.
#[derive(Default)]
struct RandomIdHasher(u64);

impl Hasher for RandomIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            self.0 = u64::from_ne_bytes(*last);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The trees of all running root calls.
#[derive(Default)]
pub(crate) struct CallTrees {
    shards: [Mutex<TreesById>; SHARDS],
}

impl CallTrees {
    fn shard(&self, stream: StreamId) -> MutexGuard<'_, TreesById> {
        let index = usize::from(stream.first_byte()) % SHARDS;
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, tree: Arc<CallTree>) {
        self.shard(tree.stream).insert(tree.stream, tree);
    }

    pub(crate) fn remove(&self, stream: StreamId) {
        self.shard(stream).remove(&stream);
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<Arc<CallTree>> {
        self.shard(stream).get(&stream).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<CallTree>> {
        self.shards
            .iter()
            .flat_map(|shard| {
                let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                shard.values().cloned().collect::<Vec<_>>()
            })
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| {
            shard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_empty()
        })
    }
}
