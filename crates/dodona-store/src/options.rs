//! What the owner of a [`Store`](crate::Store) may choose.

use std::thread;
use std::time::Duration;

/// How much a database promises once a write has been acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged write survives a power cut.
    Full,
    /// An acknowledged write survives a crash of the process; a power cut may lose the newest
    /// ones, never the database. For indexes and other things that can be built again.
    Rebuildable,
}

/// Limits of a [`Store`](crate::Store). The defaults suit a server on one machine.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How long to wait for a database that another process has locked before giving up with
    /// [`DbError::Busy`](crate::DbError::Busy).
    pub busy_timeout: Duration,
    /// Threads that serve the reads of all databases together. At least one is started.
    pub reader_threads: usize,
    /// Open connections each reader thread keeps, the least recently used going first. At least
    /// one is kept.
    pub reader_connections: usize,
    /// Requests that may wait in one queue; a caller beyond that waits for its turn to queue.
    pub queue_length: usize,
    /// Writes that may share one commit. At least one is taken.
    pub group_writes: usize,
    /// How long a commit may be put off to let further queued writes share it.
    pub group_time: Duration,
    /// The size at which a database counts as full, or `None` for what the disk holds.
    pub max_database_bytes: Option<u64>,
    /// What becomes of a database that has been there and is missing or empty.
    pub data_loss: DataLoss,
}

/// Bounds of one database whose SQL is written by a plugin from outside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// The size at which the database is full.
    pub max_bytes: u64,
    /// How long one statement may take; then it fails with
    /// [`DbError::Timeout`](crate::DbError::Timeout).
    pub statement_time: Duration,
    /// The largest text or blob, and the largest row.
    pub max_value_bytes: u32,
}

/// What becomes of a database that has been there and is missing or empty. Derived databases are
/// always created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLoss {
    /// Its use fails with [`DbError::Missing`](crate::DbError::Missing).
    Refused,
    /// It is created again, empty.
    Accepted,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            busy_timeout: Duration::from_secs(5),
            // Reads mostly wait for memory, not for the disk: more threads than processors only
            // multiply page caches.
            reader_threads: thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4)),
            reader_connections: 6,
            queue_length: 256,
            group_writes: 256,
            group_time: Duration::from_millis(5),
            max_database_bytes: None,
            data_loss: DataLoss::Refused,
        }
    }
}
