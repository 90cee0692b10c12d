//! The queries that are running in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::CallId;

use super::id::{ContextId, QueryId};
use super::query::Left;

/// Which queries somebody in this process holds. A query that is stored as running and is not
/// among them was left behind.
#[derive(Clone, Default)]
pub(super) struct LiveQueries(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    live: HashMap<QueryId, Running>,
    /// How queries end whose ending could not be stored.
    left: HashMap<QueryId, Left>,
}

/// What is known of a running query.
#[derive(Default)]
struct Running {
    place: Option<Place>,
    /// Whether somebody has said something in it beside its own loop.
    steered: bool,
}

/// Where a query runs.
struct Place {
    call: CallId,
    context: ContextId,
}

impl LiveQueries {
    /// Adds one, before it is stored.
    pub(super) fn add(&self, id: &QueryId) -> LiveQuery {
        self.with(|known| known.live.insert(id.clone(), Running::default()));
        LiveQuery {
            all: self.clone(),
            id: id.clone(),
        }
    }

    pub(super) fn contains(&self, id: &QueryId) -> bool {
        self.with(|known| known.live.contains_key(id))
    }

    /// Marks a query as steered. Returns whether it is running.
    pub(super) fn steer(&self, id: &QueryId) -> bool {
        self.with(|known| {
            let running = known.live.get_mut(id);
            running.is_some_and(|running| {
                running.steered = true;
                true
            })
        })
    }

    /// How a query ends that nobody holds any more.
    pub(super) fn left(&self, id: &QueryId) -> Left {
        self.with(|known| known.left.get(id).cloned().unwrap_or_default())
    }

    /// The ending of a query is stored.
    pub(super) fn forget(&self, id: &QueryId) {
        self.with(|known| known.left.remove(id));
    }

    /// The conversation of the query that a call is made for.
    pub(super) fn context_of(&self, call: &CallId) -> Option<ContextId> {
        self.with(|known| {
            let places = known.live.values().filter_map(|one| one.place.as_ref());
            let within = places.filter(|place| call.is_within(&place.call));
            let nearest = within.max_by_key(|place| place.call.depth());
            nearest.map(|place| place.context.clone())
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
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
        self.all.with(|known| {
            let running = known.live.entry(self.id.clone()).or_default();
            running.place = Some(Place { call, context });
        });
    }

    /// Whether the user has sent, or is about to send, a message to the running query.
    pub(super) fn was_steered(&self) -> bool {
        let steered = |known: &mut Known| known.live.get(&self.id).map(|one| one.steered);
        self.all.with(steered).unwrap_or_default()
    }

    /// Says how it ends if that cannot be stored now.
    pub(super) fn ends_as(&self, left: Left) {
        self.all
            .with(|known| known.left.insert(self.id.clone(), left));
    }

    /// How it ends.
    pub(super) fn left(&self) -> Left {
        self.all.left(&self.id)
    }
}

impl Drop for LiveQuery {
    fn drop(&mut self) {
        self.all.with(|known| known.live.remove(&self.id));
    }
}
