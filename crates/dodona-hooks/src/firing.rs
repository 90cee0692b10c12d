//! A point that is being fired.

use std::pin::Pin;
use std::task::{Context, Poll};

use dodona_proto::PluginEffect;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::list::List;
use crate::point::Point;
use crate::trace::Trace;

/// What the callbacks of a point made of its payload, and what they want to happen.
#[derive(Debug)]
pub struct Fired<T> {
    /// The payload with every edit.
    pub payload: T,
    /// In the order of the callbacks.
    pub effects: Vec<PluginEffect>,
}

/// A point that is being fired.
///
/// A future of our own and not an async function: where no callback waits, the payload stays where
/// it is while they run, and to move it about would cost more than they do.
#[must_use = "callbacks run when it is awaited"]
pub struct Firing<'a, P: Point> {
    list: &'a List<P>,
    trace: &'a Trace,
    payload: Option<P::Payload>,
    waiting: Option<BoxFuture<'a, Fired<P::Payload>>>,
}

/// Nothing in it is pinned: what could be is in a box.
impl<P: Point> Unpin for Firing<'_, P> {}

impl<'a, P: Point> Firing<'a, P> {
    #[inline]
    pub(crate) fn new(list: &'a List<P>, trace: &'a Trace, payload: P::Payload) -> Self {
        Self {
            list,
            trace,
            payload: Some(payload),
            waiting: None,
        }
    }

    #[inline]
    fn take(&mut self) -> P::Payload {
        let payload = self.payload.take();
        payload.expect("a future is not polled again after it is done")
    }
}

impl<P: Point> Future for Firing<'_, P> {
    type Output = Fired<P::Payload>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.list.waits() {
            return this.wait(cx);
        }
        let effects = match &mut this.payload {
            Some(payload) => this.list.fire_inline(payload, this.trace),
            None => Vec::new(),
        };
        Poll::Ready(Fired {
            payload: this.take(),
            effects,
        })
    }
}

impl<P: Point> Firing<'_, P> {
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Fired<P::Payload>> {
        let mut waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => self.list.fire_waiting(self.take(), self.trace).boxed(),
        };
        let polled = waiting.poll_unpin(cx);
        if polled.is_pending() {
            self.waiting = Some(waiting);
        }
        polled
    }
}
