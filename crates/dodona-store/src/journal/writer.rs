//! The writing end of a stream.

use std::sync::Arc;

use dodona_proto::{CallId, DoneStatus, ItemBody, PluginPath, StreamId};

use super::entry::{Body, Entry, Queued};
use super::live::{LiveStream, TailState};
use super::reader::StreamReader;
use super::{Committed, Journal, JournalError};

/// Appends items to one stream. Cheap to clone.
#[derive(Clone)]
pub struct StreamWriter {
    journal: Journal,
    live: Arc<LiveStream>,
}

/// An item that has its room in the queue and only has to be put there, which cannot fail or
/// wait. Lets a caller decide under a lock whether the item may still be sent.
pub struct ReservedEntry {
    queued: Queued,
    journal: Journal,
}

impl ReservedEntry {
    /// Lets the item wait a moment for what follows, to be shown together with it.
    pub fn with_next(mut self) -> Self {
        self.queued.can_wait = true;
        self
    }

    /// Puts the item into the queue.
    pub fn send(self) {
        self.journal.push(self.queued);
    }
}

/// The beginning of a stream on its way to the disk.
pub struct StreamStart(pub(super) Committed);

impl StreamStart {
    /// Waits until the stream is known after any crash.
    pub async fn committed(self) -> Result<(), JournalError> {
        self.0.await.unwrap_or(Err(JournalError::Closed))
    }
}

impl StreamWriter {
    pub(super) fn new(journal: Journal, live: Arc<LiveStream>) -> Self {
        Self { journal, live }
    }

    pub fn stream(&self) -> StreamId {
        self.live.id
    }

    /// A reader of this stream from after item `after`.
    pub fn reader(&self, after: u64) -> StreamReader {
        let (db, live) = (self.journal.inner.db.clone(), Arc::clone(&self.live));
        StreamReader::new(db, self.live.id, Some(live), false, after)
    }

    /// Waits until there is room for an item. It has no number yet: that comes with its place
    /// in a transaction.
    pub async fn reserve(
        &self,
        call: CallId,
        path: &PluginPath,
        mut body: ItemBody,
    ) -> Result<ReservedEntry, JournalError> {
        if self.live.state() != TailState::Open {
            return Err(JournalError::StreamFailed);
        }
        match &mut body {
            ItemBody::Progress { message, .. } => self.journal.redact_text(message),
            ItemBody::Data { data, .. } => self.journal.redact(data),
            ItemBody::Error { error, hint, .. } => {
                self.journal.redact_text(error);
                hint.iter_mut()
                    .for_each(|hint| self.journal.redact_text(hint));
            }
            ItemBody::Done { .. } => {}
        }
        let body = Body::from_item(body).expect("a JSON value can always be written as JSON");
        let permit = self.journal.room(body.size()).await?;
        let entry = Entry::Item {
            live: Arc::clone(&self.live),
            call,
            path: path.clone(),
            body,
        };
        Ok(ReservedEntry {
            queued: Queued {
                permit,
                ..Queued::new(entry)
            },
            journal: self.journal.clone(),
        })
    }

    /// Appends the terminal of a call. Never waits, so that a call that is being dropped can
    /// still end properly. That of a nested call is shown with what the calls above it do next.
    pub fn end(
        &self,
        call: CallId,
        path: &PluginPath,
        status: DoneStatus,
        mut reason: Option<String>,
    ) {
        if let Some(reason) = &mut reason {
            self.journal.redact_text(reason);
        }
        let body = Body::Done { status, reason };
        let entry = Entry::Item {
            live: Arc::clone(&self.live),
            call,
            path: path.clone(),
            body,
        };
        self.journal.push(Queued {
            can_wait: call.depth() > 0,
            ..Queued::new(entry)
        });
    }

    /// Completes when an item of this stream could not be stored; also when the stream has ended.
    pub async fn failed(&self) {
        let mut tail = self.live.watch();
        // The sender lives as long as `self.live`.
        let _ = tail.wait_for(|tail| tail.state != TailState::Open).await;
    }
}
