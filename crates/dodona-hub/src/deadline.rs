//! The deadline of a call, which is paused while an approval is pending.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::RunningCall;

/// The deadline of one call.
///
/// A call that waits for approval pauses its own deadline and those of its ancestors, because none of
/// them can continue before the answer. Sibling calls continue, and so do their deadlines.
pub(crate) struct CallDeadline {
    /// Without pauses; `None` means no deadline.
    deadline: Option<Instant>,
    state: Mutex<PauseState>,
    changed: Notify,
}

#[derive(Default)]
struct PauseState {
    /// How many calls pause it now.
    pauses: u32,
    /// Start of the current pause.
    since: Option<Instant>,
    /// Length of all earlier pauses.
    total: Duration,
}

impl CallDeadline {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            deadline,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Completes when the deadline has passed, pauses not counted.
    pub(crate) async fn wait_until_expired(&self) {
        let Some(deadline) = self.deadline else {
            return std::future::pending().await;
        };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the state is read, so that no change is missed.
            changed.as_mut().enable();
            match self.total_pause() {
                None => changed.await,
                Some(pause) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(deadline + pause) => return,
                },
            }
        }
    }

    /// Length of all pauses; `None` during a pause.
    fn total_pause(&self) -> Option<Duration> {
        let state = self.state();
        (state.pauses == 0).then_some(state.total)
    }

    /// Length of all pauses until now, the current one included.
    pub(crate) fn paused_so_far(&self) -> Duration {
        let state = self.state();
        state.total + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn pause(&self) {
        let mut state = self.state();
        state.pauses += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_waiters();
    }

    fn resume(&self) {
        let mut state = self.state();
        state.pauses -= 1;
        if state.pauses == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pauses the deadlines of a call and of its ancestors until dropped.
pub(crate) struct DeadlinePause(Arc<RunningCall>);

impl DeadlinePause {
    pub(crate) fn new(call: &Arc<RunningCall>) -> Self {
        call.self_and_ancestors()
            .for_each(|call| call.deadline.pause());
        Self(Arc::clone(call))
    }
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.0
            .self_and_ancestors()
            .for_each(|call| call.deadline.resume());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);

    fn deadline() -> CallDeadline {
        CallDeadline::new(Some(Instant::now() + SECOND * 10))
    }

    #[tokio::test(start_paused = true)]
    async fn paused_time_does_not_count() {
        let deadline = deadline();
        let mut expired = Box::pin(deadline.wait_until_expired());
        assert!(expired.as_mut().now_or_never().is_none());
        advance(SECOND * 9).await;
        deadline.pause();
        advance(SECOND * 3600).await;
        assert!(expired.as_mut().now_or_never().is_none(), "it is paused");
        deadline.resume();
        assert!(
            expired.as_mut().now_or_never().is_none(),
            "a second is left"
        );
        advance(SECOND * 2).await;
        assert!(expired.as_mut().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_continues_after_the_last_of_several_pauses() {
        let deadline = deadline();
        let mut expired = Box::pin(deadline.wait_until_expired());
        deadline.pause();
        advance(SECOND * 5).await;
        deadline.pause();
        advance(SECOND * 5).await;
        deadline.resume();
        advance(SECOND * 5).await;
        assert!(
            expired.as_mut().now_or_never().is_none(),
            "one pause remains"
        );
        deadline.resume();
        advance(SECOND * 9).await;
        assert!(
            expired.as_mut().now_or_never().is_none(),
            "overlapping pauses count once: 15 seconds"
        );
        advance(SECOND * 2).await;
        assert!(expired.as_mut().now_or_never().is_some());
    }
}
