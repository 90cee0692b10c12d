//! What happened before: the journal's events, read again.

use dodona_proto::{CallId, DoneStatus, StreamId};
use dodona_store::journal::{
    EventFilter, InterruptedStream, ReadPosition, RecentEvents, RecordedEvent,
};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::CallError;

/// The way to events that were journaled. The hub implements it.
///
/// It reads and never writes, one page at a time: whoever goes through years of events holds a
/// page of them. A filter names a user, so nobody reads another's by leaving something out.
pub trait EventHistory: Send + Sync {
    /// The events from a place on, with everything that was published before this was asked:
    /// oldest first when reading forwards, newest first backwards. An empty page is the last.
    fn page(
        &self,
        filter: EventFilter,
        place: ReadPosition,
    ) -> BoxFuture<'_, Result<Vec<RecordedEvent>, CallError>>;

    /// The newest `limit` events whose type is `below` or lies below it, the newest first; an empty
    /// `below` is every type. Of the filter, the user and the project count.
    fn recent<'a>(
        &'a self,
        filter: EventFilter,
        below: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<RecentEvents, CallError>>;

    /// The streams that were open when an earlier process ended, oldest first. They have ended as
    /// failed and interrupted.
    fn interrupted(&self) -> Vec<InterruptedStream> {
        Vec::new()
    }

    /// How a call of a mutating method ended, according to the journal. A call that was running when
    /// an earlier process ended has the status `failed`.
    fn call_status(&self, _call: CallId) -> BoxFuture<'_, Result<Option<DoneStatus>, CallError>> {
        Box::pin(async { Ok(None) })
    }

    /// Completes one of them with the last item that it lacks. For a plugin that stores its results
    /// before it sends them: after a crash both must say the same. Nothing happens to a stream that
    /// was not interrupted.
    fn complete_interrupted<'a>(
        &'a self,
        _stream: StreamId,
        _content_type: &'a str,
        _data: Value,
    ) -> BoxFuture<'a, Result<bool, CallError>> {
        Box::pin(async { Ok(false) })
    }
}
