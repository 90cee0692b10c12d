//! The items of a nested call on their way to the call that opened it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dodona_plugin::ItemStream;
use dodona_proto::{CallError, CallId, HubStreamItem, ItemBody};
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::DropGuard;

use crate::call::RunningCall;
use crate::dispatch::{CallGuard, CheckedCall, Dispatcher};

/// How many unread items an in-process reader may have before the call waits for it.
const CAPACITY: usize = 16;

/// Sends items to an in-process reader.
///
/// The channel itself is unbounded; a semaphore bounds it. `Error` and `Done` are sent without a
/// permit, because the end of a call must not wait. A call has at most two such items.
#[derive(Clone)]
pub(crate) struct ItemSender {
    items: mpsc::UnboundedSender<BufferedItem>,
    permits: Arc<Semaphore>,
}

/// An item and its permit, which is released when the item is read.
type BufferedItem = (HubStreamItem, Option<OwnedSemaphorePermit>);

impl ItemSender {
    /// Waits until the reader accepts another item. `None` if the reader was dropped.
    pub(crate) async fn reserve(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Sends an item. Does nothing if the reader was dropped.
    pub(crate) fn send(&self, item: HubStreamItem, permit: Option<OwnedSemaphorePermit>) {
        let _ = self.items.send((item, permit));
    }
}

/// The receiving end, before its call runs.
pub(crate) struct ItemReceiver {
    items: mpsc::UnboundedReceiver<BufferedItem>,
    permits: Arc<Semaphore>,
}

pub(crate) fn channel() -> (ItemSender, ItemReceiver) {
    let (sender, items) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(CAPACITY));
    let sender = ItemSender {
        items: sender,
        permits: Arc::clone(&permits),
    };
    (sender, ItemReceiver { items, permits })
}

impl ItemReceiver {
    /// Runs the call in its own task, so that it continues while the reader waits for something else.
    pub(crate) fn spawn_call(
        self,
        call: Arc<RunningCall>,
        checked: CheckedCall,
    ) -> Result<ItemStream, CallError> {
        let (call_id, cancel) = (call.info.call_id, call.info.cancel.clone());
        let guard = CallGuard::enter(call)?;
        tokio::spawn(Dispatcher::dispatch_entered(guard, checked));
        Ok(Box::pin(NestedItems {
            receiver: self,
            call_id,
            seq: 0,
            has_ended: false,
            _cancel: cancel.drop_guard(),
        }))
    }
}

/// The items of a nested call and of its children, numbered from 1. The `Done` of the call itself is
/// the last one. Dropping the stream cancels the call.
struct NestedItems {
    receiver: ItemReceiver,
    call_id: CallId,
    seq: u64,
    has_ended: bool,
    _cancel: DropGuard,
}

impl Drop for NestedItems {
    fn drop(&mut self) {
        // Wakes calls that wait for a permit.
        self.receiver.permits.close();
    }
}

impl Stream for NestedItems {
    type Item = HubStreamItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<HubStreamItem>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let Some((mut item, _permit)) = std::task::ready!(self.receiver.items.poll_recv(cx)) else {
            return Poll::Ready(None);
        };
        self.seq += 1;
        item.seq = self.seq;
        self.has_ended = item.call_id == self.call_id && matches!(item.body, ItemBody::Done { .. });
        Poll::Ready(Some(item))
    }
}
