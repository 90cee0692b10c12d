//! Items of a nested call on their way to the call that opened it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dodona_plugin::ItemStream;
use dodona_proto::{CallError, CallId, Item, ItemBody};
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::DropGuard;

use crate::admit::Admitted;
use crate::node::Node;
use crate::run::{self, Guard};

/// How many items wait for an in-process consumer before the call does.
const ROOM: usize = 16;

/// An in-process consumer of items.
///
/// Items wait for room. What a call ends with does not: it is sent where nothing can wait, and a
/// call has two such items at most.
#[derive(Clone)]
pub(crate) struct Tap {
    items: mpsc::UnboundedSender<Placed>,
    room: Arc<Semaphore>,
}

/// An item, and the room it takes up until it is read.
type Placed = (Item, Option<OwnedSemaphorePermit>);

impl Tap {
    /// Waits for room; `None` when the consumer has gone.
    pub(crate) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// Sends an item; into the void when the consumer has gone.
    pub(crate) fn put(&self, item: Item, room: Option<OwnedSemaphorePermit>) {
        let _ = self.items.send((item, room));
    }
}

/// The other end of a tap, before its call runs.
pub(crate) struct Consumer {
    items: mpsc::UnboundedReceiver<Placed>,
    room: Arc<Semaphore>,
}

/// A place for a nested call's items, and its consumer.
pub(crate) fn new() -> (Tap, Consumer) {
    let (sender, items) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM));
    let tap = Tap {
        items: sender,
        room: Arc::clone(&room),
    };
    (tap, Consumer { items, room })
}

impl Consumer {
    /// Runs the call in a task of its own, because its consumer may wait elsewhere meanwhile.
    pub(crate) fn watch(
        self,
        node: Arc<Node>,
        admitted: Admitted,
    ) -> Result<ItemStream, CallError> {
        let (call, cancel) = (node.info.call_id, node.info.cancel.clone());
        let guard = Guard::enter(node)?;
        tokio::spawn(run::entered(guard, admitted));
        Ok(Box::pin(Nested {
            from: self,
            call,
            seq: 0,
            ended: false,
            _cancel: cancel.drop_guard(),
        }))
    }
}

/// The items of a nested call and of everything below it, its own terminal last, numbered from 1.
/// Dropping it cancels the call.
struct Nested {
    from: Consumer,
    call: CallId,
    seq: u64,
    ended: bool,
    _cancel: DropGuard,
}

impl Drop for Nested {
    fn drop(&mut self) {
        // Lets go of whoever waits for room.
        self.from.room.close();
    }
}

impl Stream for Nested {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Some((mut item, _room)) = std::task::ready!(self.from.items.poll_recv(cx)) else {
            return Poll::Ready(None);
        };
        self.seq += 1;
        item.seq = self.seq;
        self.ended = item.call_id == self.call && matches!(item.body, ItemBody::Done { .. });
        Poll::Ready(Some(item))
    }
}
