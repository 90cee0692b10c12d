//! What holds for a call and for every call below it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_proto::CallId;

/// Something that calls have, by the call at which it begins. Whoever is below finds the nearest.
pub(crate) struct InheritedByCall<T>(Arc<Mutex<HashMap<CallId, Arc<T>>>>);

/// A call that has something; no longer when it is dropped.
pub(crate) struct Entered<T> {
    all: InheritedByCall<T>,
    call: CallId,
}

impl<T> InheritedByCall<T> {
    /// From here on calls below this one have it.
    pub(crate) fn enter(&self, call: &CallId, thing: Arc<T>) -> Entered<T> {
        self.with(|known| known.insert(*call, thing));
        Entered {
            all: self.clone(),
            call: *call,
        }
    }

    /// What the nearest call above has, or the call itself, and how many above have something.
    pub(crate) fn above(&self, call: &CallId) -> (Option<Arc<T>>, usize) {
        self.with(|known| {
            let within = known.iter().filter(|(above, _)| call.is_within(above));
            let depth = within.clone().count();
            let nearest = within.max_by_key(|(above, _)| above.depth());
            (nearest.map(|(_, thing)| Arc::clone(thing)), depth)
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashMap<CallId, Arc<T>>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for InheritedByCall<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for InheritedByCall<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Drop for Entered<T> {
    fn drop(&mut self) {
        self.all.with(|known| known.remove(&self.call));
    }
}
