//! The time a call has, which stands still while a person is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::node::Node;

/// The clock of one call.
///
/// A call that waits for a person's answer holds its own clock and those of the calls above it:
/// none of them can go on before the answer. Calls beside it go on, and so do their clocks.
pub(crate) struct Clock {
    /// When the time is over, if the clock is never held.
    deadline: Option<Instant>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// How many calls hold it.
    holds: u32,
    /// Since when it has been held.
    since: Option<Instant>,
    /// How long it was held before.
    held: Duration,
}

impl Clock {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            deadline,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Completes when the time is over.
    pub(crate) async fn over(&self) {
        let Some(deadline) = self.deadline else {
            return std::future::pending().await;
        };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change goes unseen.
            changed.as_mut().enable();
            match self.held() {
                None => changed.await,
                Some(held) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(deadline + held) => return,
                },
            }
        }
    }

    /// How long it was held; `None` while it is.
    fn held(&self) -> Option<Duration> {
        let state = self.state();
        (state.holds == 0).then_some(state.held)
    }

    fn hold(&self) {
        let mut state = self.state();
        state.holds += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_waiters();
    }

    fn release(&self) {
        let mut state = self.state();
        state.holds -= 1;
        if state.holds == 0
            && let Some(since) = state.since.take()
        {
            state.held += since.elapsed();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds the clocks of a call and of those above it, until dropped.
pub(crate) struct Pause(Arc<Node>);

impl Pause {
    pub(crate) fn of(node: &Arc<Node>) -> Self {
        node.lineage().for_each(|node| node.clock.hold());
        Self(Arc::clone(node))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.lineage().for_each(|node| node.clock.release());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> Clock {
        Clock::new(Some(Instant::now() + SECOND * 10))
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_a_clock_is_held_does_not_count() {
        let clock = clock();
        let mut over = Box::pin(clock.over());
        assert!(over.as_mut().now_or_never().is_none());
        advance(SECOND * 9).await;
        clock.hold();
        advance(SECOND * 3600).await;
        assert!(over.as_mut().now_or_never().is_none(), "it is held");
        clock.release();
        assert!(over.as_mut().now_or_never().is_none(), "a second is left");
        advance(SECOND * 2).await;
        assert!(over.as_mut().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_several_hold_stands_still_until_the_last_lets_go() {
        let clock = clock();
        let mut over = Box::pin(clock.over());
        clock.hold();
        advance(SECOND * 5).await;
        clock.hold();
        advance(SECOND * 5).await;
        clock.release();
        advance(SECOND * 5).await;
        assert!(over.as_mut().now_or_never().is_none(), "one still holds it");
        clock.release();
        advance(SECOND * 9).await;
        assert!(
            over.as_mut().now_or_never().is_none(),
            "it was held for 15 seconds, once"
        );
        advance(SECOND * 2).await;
        assert!(over.as_mut().now_or_never().is_some());
    }
}
