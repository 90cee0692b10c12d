//! Firing a hook point.

use std::pin::Pin;
use std::task::{Context, Poll};

use dodona_proto::PluginEffect;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::list::List;
use crate::point::Point;
use crate::trace::Trace;

/// The result of firing a hook point: the changed payload and the effects of the callbacks.
#[derive(Debug)]
pub struct Fired<T> {
    /// The payload with all edits applied.
    pub payload: T,
    /// The effects, in the order of the callbacks.
    pub effects: Vec<PluginEffect>,
}

/// Firing a hook point.
///
/// A hand-written future instead of an async function: if no callback is async, the payload is not moved while
/// they run. Moving it would cost more than most callbacks.
#[must_use = "callbacks run when it is awaited"]
pub struct Firing<'a, P: Point> {
    list: &'a List<P>,
    trace: &'a Trace,
    payload: Option<P::Payload>,
    waiting: Option<BoxFuture<'a, Fired<P::Payload>>>,
}

/// No field is pinned; futures of callbacks are boxed.
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
