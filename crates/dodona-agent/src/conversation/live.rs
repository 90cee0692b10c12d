//! The queries that are running in this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::id::QueryId;

/// Which queries somebody in this process holds. A query that is stored as running and is not
/// among them was left behind.
#[derive(Clone, Default)]
pub(super) struct LiveQueries(Arc<Mutex<HashSet<QueryId>>>);

impl LiveQueries {
    /// Adds one, before it is stored.
    pub(super) fn add(&self, id: &QueryId) -> LiveQuery {
        self.with(|live| live.insert(id.clone()));
        LiveQuery {
            all: self.clone(),
            id: id.clone(),
        }
    }

    pub(super) fn contains(&self, id: &QueryId) -> bool {
        self.with(|live| live.contains(id))
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashSet<QueryId>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// That a query is running; dropped when it no longer is.
pub(super) struct LiveQuery {
    all: LiveQueries,
    id: QueryId,
}

impl Drop for LiveQuery {
    fn drop(&mut self) {
        self.all.with(|live| live.remove(&self.id));
    }
}
