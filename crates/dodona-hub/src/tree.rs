//! The calls that are running.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dodona_proto::{CallError, CallId, ErrorCode, StreamId, UserId};
use dodona_store::journal::StreamWriter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::attendance::Attendance;
use crate::node::Node;

/// A root call with everything below it.
pub(crate) struct Root {
    pub(crate) stream: StreamId,
    pub(crate) user: UserId,
    /// Where its items go; absent for a unary call that nobody watches.
    pub(crate) writer: Option<StreamWriter>,
    /// Who reads them.
    pub(crate) attendance: Option<Attendance>,
    pub(crate) cancel: CancellationToken,
    reason: OnceLock<&'static str>,
    nodes: Mutex<Vec<Arc<Node>>>,
    /// Told whenever a call of this tree ends.
    pub(crate) ended: Notify,
}

impl Root {
    /// A call whose items nobody sees.
    pub(crate) fn unwatched(stream: StreamId, user: UserId) -> Self {
        let (cancel, reason) = (CancellationToken::new(), OnceLock::new());
        let (nodes, ended) = (Mutex::default(), Notify::new());
        Self {
            stream,
            user,
            writer: None,
            attendance: None,
            cancel,
            reason,
            nodes,
            ended,
        }
    }

    /// A call whose items are journaled and read.
    pub(crate) fn watched(
        stream: StreamId,
        user: UserId,
        writer: StreamWriter,
        attendance: Attendance,
    ) -> Self {
        Self {
            writer: Some(writer),
            attendance: Some(attendance),
            ..Self::unwatched(stream, user)
        }
    }

    /// Cancels the root and everything below it.
    pub(crate) fn stop(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
        self.cancel.cancel();
    }

    /// Why calls of this tree were stopped.
    pub(crate) fn stop_reason(&self) -> &'static str {
        self.reason.get().copied().unwrap_or("cancelled")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, unless the one that made it is ending or the tree is full.
    pub(crate) fn add(&self, node: Arc<Node>, most: u32) -> Result<(), CallError> {
        let mut nodes = self.lock();
        if !node.is_wanted() {
            return Err(CallError::new(
                ErrorCode::Cancelled,
                "the call that made this one has ended",
            ));
        }
        if nodes.len() > most as usize {
            return Err(CallError::new(
                ErrorCode::TooManyCalls,
                format!("more than {most} calls run below one"),
            ));
        }
        nodes.push(node);
        Ok(())
    }

    /// Removes a call that has ended.
    pub(crate) fn remove(&self, call: &CallId) {
        let mut nodes = self.lock();
        if let Some(index) = nodes.iter().rposition(|node| node.info.call_id == *call) {
            nodes.swap_remove(index).leave();
        }
        drop(nodes);
        self.ended.notify_waiters();
    }

    /// Refuses new calls below this one from now on and hands out those still running, the
    /// deepest first.
    pub(crate) fn close(&self, call: &CallId) -> Vec<Arc<Node>> {
        let nodes = self.lock();
        let within = nodes
            .iter()
            .filter(|node| node.info.call_id.is_within(call));
        let mut below: Vec<Arc<Node>> = within
            .inspect(|node| node.close())
            .filter(|node| node.info.call_id != *call)
            .cloned()
            .collect();
        drop(nodes);
        below.sort_by_key(|node| std::cmp::Reverse(node.info.call_id));
        below
    }

    /// The calls running now.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.lock().clone()
    }
}

/// How many locks share the roots; a call takes one of them twice, briefly.
const SHARDS: usize = 16;

type Roots = HashMap<StreamId, Arc<Root>, BuildHasherDefault<AlreadyRandom>>;

/// A hash of what is random anyway: the last eight bytes that are written.
#[derive(Default)]
struct AlreadyRandom(u64);

impl Hasher for AlreadyRandom {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            self.0 = u64::from_ne_bytes(*last);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Every root call that is running.
#[derive(Default)]
pub(crate) struct Calls {
    shards: [Mutex<Roots>; SHARDS],
}

impl Calls {
    fn shard(&self, stream: StreamId) -> MutexGuard<'_, Roots> {
        let index = usize::from(stream.first_byte()) % SHARDS;
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, root: Arc<Root>) {
        self.shard(root.stream).insert(root.stream, root);
    }

    pub(crate) fn remove(&self, stream: StreamId) {
        self.shard(stream).remove(&stream);
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<Arc<Root>> {
        self.shard(stream).get(&stream).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Root>> {
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
