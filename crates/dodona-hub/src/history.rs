//! Access to recorded events for plugins.

use dodona_plugin::{BoxFuture, CallError, EventHistory};
use dodona_proto::{CallId, DoneStatus, StreamId};
use dodona_store::journal::{
    EventFilter, InterruptedStream, Journal, ReadPosition, RecentEvents, RecordedEvent,
};
use serde_json::Value;

/// Reads the events in the journal.
pub(crate) struct History {
    journal: Journal,
}

impl History {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal }
    }
}

impl EventHistory for History {
    fn page(
        &self,
        filter: EventFilter,
        place: ReadPosition,
    ) -> BoxFuture<'_, Result<Vec<RecordedEvent>, CallError>> {
        Box::pin(async move {
            // Events are queued before they are stored. What was published before a reader begins
            // is stored once it has waited here; later pages are about older events.
            if matches!(place, ReadPosition::Beginning | ReadPosition::End) {
                self.journal.flush().await?;
            }
            Ok(self.journal.events_from(filter, place).await?)
        })
    }

    fn recent<'a>(
        &'a self,
        filter: EventFilter,
        below: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<RecentEvents, CallError>> {
        Box::pin(async move {
            self.journal.flush().await?;
            Ok(self.journal.recent_of(filter, below, limit).await?)
        })
    }

    fn interrupted(&self) -> Vec<InterruptedStream> {
        self.journal.interrupted().to_vec()
    }

    fn call_status(&self, call: CallId) -> BoxFuture<'_, Result<Option<DoneStatus>, CallError>> {
        Box::pin(async move { Ok(self.journal.call_status(call).await?) })
    }

    fn complete_interrupted<'a>(
        &'a self,
        stream: StreamId,
        content_type: &'a str,
        data: Value,
    ) -> BoxFuture<'a, Result<bool, CallError>> {
        Box::pin(async move {
            let completed = self
                .journal
                .complete_interrupted(stream, content_type, data);
            Ok(completed.await?)
        })
    }
}
