//! Being told by the system when files change.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Mutex, Notify};

/// Directories that are watched.
///
/// Each is watched by itself, because what is ignored (build output above all) is often larger
/// than everything else and would keep the watcher busy.
pub(super) struct Watch {
    state: Arc<State>,
    watched: Mutex<(RecommendedWatcher, HashSet<PathBuf>)>,
}

#[derive(Default)]
struct State {
    /// Something changed since the last look.
    changed: AtomicBool,
    /// It cannot be relied on.
    broken: AtomicBool,
    /// Wakes whoever waits for a change.
    wake: Notify,
}

impl State {
    fn change(&self) {
        self.changed.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }
}

impl Watch {
    /// A watch over nothing yet.
    pub(super) fn new() -> notify::Result<Self> {
        let state = Arc::new(State::default());
        let told = Arc::clone(&state);
        let watcher = notify::recommended_watcher(move |event| {
            if matters(&event) {
                told.change();
            }
        })?;
        Ok(Self {
            state,
            watched: Mutex::new((watcher, HashSet::new())),
        })
    }

    /// Watches exactly these directories from now on. Tells whether there were new ones: what
    /// happened in them before this was not seen.
    pub(super) async fn cover(&self, dirs: HashSet<PathBuf>) -> notify::Result<bool> {
        let mut watched = self.watched.lock().await;
        let (watcher, known) = &mut *watched;
        for gone in known.difference(&dirs) {
            // A directory that was removed is no longer watched anyway.
            let _ = watcher.unwatch(gone);
        }
        let mut new = false;
        for dir in dirs.difference(known) {
            match watcher.watch(dir, RecursiveMode::NonRecursive) {
                Ok(()) => new = true,
                // It was removed since it was seen, which its parent tells.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        *known = dirs;
        Ok(new)
    }

    /// Whether something changed since this was asked last.
    pub(super) fn take_changed(&self) -> bool {
        self.state.changed.swap(false, Ordering::AcqRel)
    }

    /// Says that something changed.
    pub(super) fn mark(&self) {
        self.state.change();
    }

    /// Says that this watch does not see everything.
    pub(super) fn give_up(&self) {
        self.state.broken.store(true, Ordering::Release);
    }

    /// Whether it can be relied on.
    pub(super) fn works(&self) -> bool {
        !self.state.broken.load(Ordering::Acquire)
    }

    pub(super) fn has_changed(&self) -> bool {
        self.state.changed.load(Ordering::Acquire)
    }

    /// Waits until something changes; returns at once if it already did.
    pub(super) async fn changed(&self) {
        loop {
            let woken = self.state.wake.notified();
            if self.has_changed() {
                return;
            }
            woken.await;
        }
    }
}

/// Whether an event can mean that a file is another. Reading one is not: we do it ourselves.
fn matters(event: &notify::Result<Event>) -> bool {
    match event {
        // Events were lost, or the watch itself is in trouble.
        Err(_) => true,
        Ok(event) if event.need_rescan() => true,
        Ok(event) => match event.kind {
            EventKind::Access(_) => false,
            EventKind::Modify(ModifyKind::Metadata(_)) => false,
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        },
    }
}
