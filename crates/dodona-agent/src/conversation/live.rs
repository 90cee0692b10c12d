//! The queries that are running in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::CallId;

use super::id::{ContextId, QueryId};

/// Which queries somebody in this process holds. A query that is stored as running and is not
/// among them was left behind.
#[derive(Clone, Default)]
pub(super) struct LiveQueries(Arc<Mutex<HashMap<QueryId, Option<Place>>>>);

/// Where a query runs.
struct Place {
    call: CallId,
    context: ContextId,
}

impl LiveQueries {
    /// Adds one, before it is stored.
    pub(super) fn add(&self, id: &QueryId) -> LiveQuery {
        self.with(|live| live.insert(id.clone(), None));
        LiveQuery {
            all: self.clone(),
            id: id.clone(),
        }
    }

    pub(super) fn contains(&self, id: &QueryId) -> bool {
        self.with(|live| live.contains_key(id))
    }

    /// The conversation of the query that a call is made for.
    pub(super) fn context_of(&self, call: &CallId) -> Option<ContextId> {
        self.with(|live| {
            let places = live.values().flatten();
            let within = places.filter(|place| call.is_within(&place.call));
            let nearest = within.max_by_key(|place| place.call.depth());
            nearest.map(|place| place.context.clone())
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashMap<QueryId, Option<Place>>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// That a query is running; dropped when it no longer is.
pub(super) struct LiveQuery {
    all: LiveQueries,
    id: QueryId,
}

impl LiveQuery {
    /// Says which call it runs in.
    pub(super) fn runs_in(&self, call: &CallId, context: &ContextId) {
        let (call, context) = (*call, context.clone());
        let place = Some(Place { call, context });
        self.all.with(|live| live.insert(self.id.clone(), place));
    }
}

impl Drop for LiveQuery {
    fn drop(&mut self) {
        self.all.with(|live| live.remove(&self.id));
    }
}
