//! Streams of items, and reading them.

use std::sync::Arc;

use dodona_proto::{CallError, ErrorCode, HubStreamItem, Principal, StreamId, UserId};
use dodona_store::journal::{StoredItem, StreamReader};

use crate::call_tree::CallTree;
use crate::dispatch::CALLER_GONE;
use crate::hub::{HubInner, PluginHub};
use crate::reader_count::{ReaderCount, ReaderGuard};

impl PluginHub {
    /// Reads a running or finished stream, starting with the item after number `after`. A stream of
    /// another user is reported as not found, unless the caller has the scope `hub:admin`.
    pub async fn attach(
        &self,
        caller: &Principal,
        stream: StreamId,
        after: u64,
    ) -> Result<Reader, CallError> {
        // Counted before the journal is read, so that the stream is not cancelled meanwhile.
        let guard = self
            .inner
            .call_trees
            .get(stream)
            .and_then(|tree| tree.readers.as_ref().map(ReaderCount::add_reader));
        let found = match self.inner.journal.head(stream).await? {
            Some((head, _)) if self.inner.may_see(caller, &head.user) => {
                self.inner.journal.reader(stream, after).await?
            }
            _ => None,
        };
        match found {
            Some(reader) => Ok(Reader::new(stream, reader, guard)),
            None => Err(CallError::new(
                ErrorCode::NotFound,
                format!("stream `{stream}` not found"),
            )),
        }
    }
}

/// The reading end of a stream.
pub struct Reader {
    stream: StreamId,
    reader: StreamReader,
    /// `None` for a finished stream.
    guard: Option<ReaderGuard>,
}

impl Reader {
    pub(crate) fn new(stream: StreamId, reader: StreamReader, guard: Option<ReaderGuard>) -> Self {
        Self {
            stream,
            reader,
            guard,
        }
    }

    /// The id of the stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Whether the stream was still running when the reader was created.
    pub fn is_live(&self) -> bool {
        self.reader.is_live()
    }

    /// Waits for the next items and returns at least one; `None` after the last `Done`. Cancel safe:
    /// no item is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        let items = self.reader.next().await?;
        if items.is_none() {
            self.guard = None;
        }
        Ok(items)
    }
}

/// A running call and its items. Dropping it cancels the call.
pub struct CallStream {
    reader: Reader,
    cancel: CancelOnDrop,
}

/// Cancels a call tree when dropped, unless it was set to `None`.
struct CancelOnDrop(Option<Arc<CallTree>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(tree) = self.0.take() {
            tree.cancel(CALLER_GONE);
        }
    }
}

impl CallStream {
    pub(crate) fn new(reader: Reader, tree: Arc<CallTree>) -> Self {
        Self {
            reader,
            cancel: CancelOnDrop(Some(tree)),
        }
    }

    /// The id of the stream.
    pub fn stream(&self) -> StreamId {
        self.reader.stream
    }

    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        self.reader.next().await
    }

    /// Reads all items to the end and parses them. Holds them in memory, so use it for short streams.
    pub async fn collect(mut self) -> Result<Vec<HubStreamItem>, CallError> {
        let mut all = Vec::new();
        while let Some(items) = self.next().await? {
            for item in items {
                let item = item.to_item();
                all.push(item.map_err(|error| {
                    CallError::new(ErrorCode::Internal, "failed to parse a stored item").log(error)
                })?);
            }
        }
        Ok(all)
    }

    /// Returns the reader alone. Dropping the reader does not cancel the call: it continues for the
    /// hub's `stream_grace`, in which another reader may attach.
    pub fn into_reader(mut self) -> Reader {
        self.cancel.0 = None;
        self.reader
    }

    /// Lets the call run to its end, with or without readers.
    pub fn detach(self) -> Reader {
        if let Some(readers) = (self.cancel.0.as_ref()).and_then(|tree| tree.readers.as_ref()) {
            readers.detach();
        }
        self.into_reader()
    }
}

impl HubInner {
    /// The user whose calls and streams the caller may see; `None` means those of all users.
    pub(crate) fn owner_filter<'a>(&self, caller: &'a Principal) -> Option<&'a UserId> {
        (!caller.scopes.allow(&self.admin)).then_some(&caller.user)
    }

    /// Whether the caller may see what belongs to `owner`.
    pub(crate) fn may_see(&self, caller: &Principal, owner: &UserId) -> bool {
        caller.user == *owner || caller.scopes.allow(&self.admin)
    }
}
