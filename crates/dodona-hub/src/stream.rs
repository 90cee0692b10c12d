//! Calls whose items are watched.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dodona_plugin::ItemStream;
use dodona_proto::{CallError, DoneStatus, ErrorCode, Item, ItemBody, Principal, StreamId};
use dodona_store::journal::{StoredItem, StreamHead, StreamReader};
use futures_util::Stream;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::admit::{Admitted, Reach};
use crate::attendance::{Attendance, Attendant};
use crate::hub::{Core, Hub};
use crate::node::{Node, Tap};
use crate::request::Request;
use crate::run;
use crate::tree::Root;

/// How many items wait for an in-process consumer before the call does.
const TAP: usize = 16;

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
        let writer = core.journal.begin_stream(head).await?;
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
        tokio::spawn(drive(node, admitted));
        let reader = Reader {
            stream,
            reader,
            attendant: Some(attendant),
        };
        Ok(CallStream {
            reader,
            cancel: CancelOnDrop(Some(root)),
        })
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
async fn drive(node: Arc<Node>, admitted: Admitted) {
    let root = Arc::clone(&node.root);
    let grace = node.core.config.stream_grace;
    let mut run = std::pin::pin!(run::admitted(node, admitted));
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

/// A place for a nested call's items, and the stream that reads them.
pub(crate) fn tap() -> (Tap, Tapped) {
    let (sender, items) = mpsc::channel(TAP);
    (Tap::new(sender), Tapped { items })
}

pub(crate) struct Tapped {
    items: mpsc::Receiver<Item>,
}

impl Tapped {
    /// Runs the call in a task of its own, because its consumer may wait elsewhere meanwhile.
    pub(crate) fn watch(self, node: Arc<Node>, admitted: Admitted) -> ItemStream {
        let cancel = node.info.cancel.clone().drop_guard();
        let body = ItemBody::Done {
            status: DoneStatus::Cancelled,
            reason: None,
        };
        let (call_id, plugin_path) = (node.info.call_id, node.info.path.clone());
        tokio::spawn(run::admitted(node, admitted));
        let end = Some(Item {
            call_id,
            seq: 0,
            plugin_path,
            body,
        });
        Box::pin(Nested {
            items: self.items,
            end,
            last_seq: 0,
            _cancel: cancel,
        })
    }
}

/// The items of a nested call, its own terminal last. Dropping it cancels the call.
struct Nested {
    items: mpsc::Receiver<Item>,
    /// The terminal for a call that could not send its own: it was dropped, or its consumer let
    /// it wait too long. Taken when the terminal has been handed out.
    end: Option<Item>,
    last_seq: u64,
    _cancel: DropGuard,
}

impl Stream for Nested {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let Some(own) = self.end.as_ref().map(|end| end.call_id) else {
            return Poll::Ready(None);
        };
        let Some(item) = std::task::ready!(self.items.poll_recv(cx)) else {
            let seq = self.last_seq + 1;
            return Poll::Ready(self.end.take().map(|end| Item { seq, ..end }));
        };
        self.last_seq = item.seq;
        if item.call_id == own && matches!(item.body, ItemBody::Done { .. }) {
            self.end = None;
        }
        Poll::Ready(Some(item))
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
