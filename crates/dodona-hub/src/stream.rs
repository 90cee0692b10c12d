//! Calls whose items are watched.

use std::sync::Arc;

use dodona_proto::{CallError, ErrorCode, Item, Principal, StreamId};
use dodona_store::journal::{StoredItem, StreamHead, StreamReader};
use jiff::Timestamp;

use crate::admit::{Admitted, Reach};
use crate::attendance::{Attendance, Attendant};
use crate::hub::{Core, Hub};
use crate::request::Request;
use crate::run::{self, Guard};
use crate::tree::Root;

impl Hub {
    /// Starts a call and hands out its items. They are journaled, and committed before they are
    /// handed out.
    pub async fn open(&self, request: Request) -> Result<CallStream, CallError> {
        let core = &self.core;
        let project = core
            .projects
            .get(&request.principal, request.project.as_ref())?;
        let admitted = core.admit(
            &request.principal,
            Reach::Outside,
            project.as_deref(),
            &request.method,
            request.params,
        )?;
        let descriptor = admitted.route.descriptor();
        let stream = StreamId::random();
        let head = StreamHead {
            stream,
            user: request.principal.user.clone(),
            project: project.as_ref().map(|project| project.id.clone()),
            surface: request.principal.surface,
            method: descriptor.name.clone(),
            params: admitted.params.clone(),
            began: Timestamp::now(),
        };
        let (writer, begun) = core.journal.begin_stream(head).await?;
        let reader = writer.reader(0);
        let attendance = Attendance::new(request.keep);
        let attendant = attendance.attend();
        let root = Arc::new(Root::watched(
            stream,
            request.principal.user.clone(),
            writer,
            attendance,
        ));
        let node = core.root_node(
            &root,
            &admitted.route,
            request.principal,
            project,
            request.timeout,
        );
        // Entered here, so that whoever knows the stream's id can attach and cancel from now on.
        let guard = Guard::enter(node)?;
        tokio::spawn(drive(guard, admitted));
        let reader = Reader {
            stream,
            reader,
            attendant: Some(attendant),
        };
        let opened = CallStream {
            reader,
            cancel: CancelOnDrop(Some(root)),
        };
        // The call is at work meanwhile. Nobody knows its id before it would be known after a crash.
        begun.committed().await?;
        Ok(opened)
    }

    /// Reads a stream, running or finished, from after item `after`. Somebody else's is not
    /// found.
    pub async fn attach(
        &self,
        who: &Principal,
        stream: StreamId,
        after: u64,
    ) -> Result<Reader, CallError> {
        // Before the journal is asked, so that a stream does not run out of readers meanwhile.
        let attendant = self
            .core
            .calls
            .get(stream)
            .and_then(|root| root.attendance.as_ref().map(Attendance::attend));
        let found = match self.core.journal.head(stream).await? {
            Some((head, _)) if self.core.may_see(who, &head.user) => {
                self.core.journal.reader(stream, after).await?
            }
            _ => None,
        };
        match found {
            Some(reader) => Ok(Reader {
                stream,
                reader,
                attendant,
            }),
            None => Err(CallError::new(
                ErrorCode::NotFound,
                format!("there is no stream `{stream}`"),
            )),
        }
    }
}

/// Runs a streaming root to its end, or until nobody has read it for too long.
async fn drive(guard: Guard, admitted: Admitted) {
    let root = Arc::clone(&guard.node().root);
    let grace = guard.node().core.config.stream_grace;
    let mut run = std::pin::pin!(run::entered(guard, admitted));
    if let Some(attendance) = &root.attendance {
        tokio::select! {
            biased;
            _ = &mut run => return,
            () = attendance.abandoned(grace) => root.stop("nobody was reading"),
        }
    }
    // The outcome is in the stream.
    let _ = run.await;
}

/// The reading end of a stream.
pub struct Reader {
    stream: StreamId,
    reader: StreamReader,
    attendant: Option<Attendant>,
}

impl Reader {
    /// Which stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Whether the stream was still being written when it was attached to.
    pub fn is_live(&self) -> bool {
        self.reader.is_live()
    }

    /// The next items, at least one, in the form they are stored and sent; `None` after the
    /// terminal. Safe to drop and call again.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        let items = self.reader.next().await?;
        if items.is_none() {
            self.attendant = None;
        }
        Ok(items)
    }
}

/// A call that was opened here, and its items. Dropping it cancels the call.
pub struct CallStream {
    reader: Reader,
    cancel: CancelOnDrop,
}

/// Cancels a root call when dropped, unless that was called off.
struct CancelOnDrop(Option<Arc<Root>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(root) = self.0.take() {
            root.stop("nobody waits for the result any more");
        }
    }
}

impl CallStream {
    /// Which stream.
    pub fn stream(&self) -> StreamId {
        self.reader.stream
    }

    /// As [`Reader::next`].
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        self.reader.next().await
    }

    /// Every item to the end, parsed. For short streams.
    pub async fn collect(mut self) -> Result<Vec<Item>, CallError> {
        let mut all = Vec::new();
        while let Some(items) = self.next().await? {
            for item in items {
                let item = item.to_item();
                all.push(item.map_err(|error| {
                    CallError::new(ErrorCode::Internal, "a stored item cannot be read").log(error)
                })?);
            }
        }
        Ok(all)
    }

    /// The reading end alone. Dropping that does not cancel the call: it goes on for the hub's
    /// grace time, in which a reader may attach.
    pub fn into_reader(mut self) -> Reader {
        self.cancel.0 = None;
        self.reader
    }

    /// Lets the call run to its end whether anybody reads it or not.
    pub fn detach(self) -> Reader {
        if let Some(attendance) = self
            .cancel
            .0
            .as_ref()
            .and_then(|root| root.attendance.as_ref())
        {
            attendance.detach();
        }
        self.into_reader()
    }
}

impl Core {
    /// Whose things a user may see: only their own, or everybody's (`None`).
    pub(crate) fn owner_filter<'a>(&self, who: &'a Principal) -> Option<&'a dodona_proto::UserId> {
        (!who.scopes.allow(&self.admin)).then_some(&who.user)
    }

    /// Whether a user may see what is another's.
    pub(crate) fn may_see(&self, who: &Principal, owner: &dodona_proto::UserId) -> bool {
        who.user == *owner || who.scopes.allow(&self.admin)
    }
}
