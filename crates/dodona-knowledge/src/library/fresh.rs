//! Keeping a project in step while the process lives.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::meaning::Effort;
use super::shelf::Shelf;
use super::sync::Synced;
use super::watch::Watch;

/// How long what was seen on the disk is believed without a watch.
const FRESH: Duration = Duration::from_secs(2);

/// The same with a watch. A watch cannot tell everything, a changed global ignore file for one.
const WATCHED: Duration = Duration::from_secs(60);

/// How long after a change to wait for more: editors and version control write in bursts.
const QUIET: Duration = Duration::from_millis(200);

impl Shelf {
    /// Brings index and catalogue in step with the disk, unless they are already.
    ///
    /// The second time this is needed, the process is one that stays, and the disk is watched
    /// from then on: changes are taken in when they happen, and questions need not wait.
    pub(crate) async fn freshen(self: &Arc<Self>, ctx: &CallCtx) -> Result<(), CallError> {
        let mut looked = self.looked.lock().await;
        let due = match (*looked, self.watching()) {
            (None, _) => true,
            _ if self.touched.load(Ordering::Acquire) => true,
            (Some(at), Some(watch)) => watch.has_changed() || at.elapsed() > WATCHED,
            (Some(at), None) => at.elapsed() > FRESH,
        };
        if due {
            if looked.is_some() {
                self.start_watch();
            }
            *looked = None;
            self.look(Some(ctx), Effort::Some).await?;
            *looked = Some(Instant::now());
        }
        Ok(())
    }

    /// Everything that changes from now on, as it is taken in.
    pub(crate) fn updates(self: &Arc<Self>) -> broadcast::Receiver<Synced> {
        let updates = self.updates.subscribe();
        self.start_watch();
        updates
    }

    fn watching(&self) -> Option<&Arc<Watch>> {
        self.watch.get().filter(|watch| watch.works())
    }

    /// Watches the disk, if that is not done already. Where it cannot be, it is looked at when
    /// there is a question.
    fn start_watch(self: &Arc<Self>) {
        if self.watch.get().is_some() {
            return;
        }
        let watch = match Watch::new() {
            Ok(watch) => Arc::new(watch),
            Err(error) => {
                tracing::warn!(%error, "files cannot be watched; they are looked at instead");
                return;
            }
        };
        // Nothing is covered yet: the first look does that, and another one follows it.
        watch.mark();
        if self.watch.set(Arc::clone(&watch)).is_ok() {
            tokio::spawn(keep_up(watch, Arc::downgrade(self)));
        }
    }

    /// Watches these directories. New ones are looked at once more: what happened in them while
    /// nobody watched is seen then.
    pub(super) async fn cover(&self, dirs: HashSet<PathBuf>) {
        let Some(watch) = self.watching() else { return };
        match watch.cover(dirs).await {
            Ok(true) => watch.mark(),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "not every directory can be watched; they are looked at instead");
                watch.give_up();
            }
        }
    }
}

/// Takes in what changes, for as long as there is a shelf.
async fn keep_up(watch: Arc<Watch>, shelf: Weak<Shelf>) {
    while watch.works() {
        // Now and then to see whether the shelf is still there.
        if tokio::time::timeout(WATCHED, watch.changed()).await.is_ok() {
            tokio::time::sleep(QUIET).await;
        }
        let Some(shelf) = shelf.upgrade() else { return };
        let mut looked = shelf.looked.lock().await;
        if !watch.has_changed() {
            continue;
        }
        *looked = None;
        match shelf.look(None, Effort::All).await {
            Ok(synced) => {
                *looked = Some(Instant::now());
                // Nobody may be listening.
                let _ = shelf.updates.send(synced);
            }
            Err(error) => {
                tracing::warn!(%error, "a change was not taken in; the next question tries again");
            }
        }
    }
}
