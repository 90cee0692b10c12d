//! Counting the readers of a stream.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::request::UnreadPolicy;

/// Counts the readers of a running stream, so that a stream without readers can be cancelled.
pub(crate) struct ReaderCount {
    readers: watch::Sender<Readers>,
}

#[derive(Clone, Copy)]
struct Readers {
    count: usize,
    policy: UnreadPolicy,
    /// When the last reader left; the start of the stream if there was none.
    left: Instant,
}

/// One reader of a stream. Dropping it removes the reader from the count.
pub(crate) struct ReaderGuard(watch::Sender<Readers>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.send_modify(|readers| {
            readers.count -= 1;
            readers.left = Instant::now();
        });
    }
}

impl ReaderCount {
    pub(crate) fn new(policy: UnreadPolicy) -> Self {
        let readers = watch::Sender::new(Readers {
            count: 0,
            policy,
            left: Instant::now(),
        });
        Self { readers }
    }

    pub(crate) fn add_reader(&self) -> ReaderGuard {
        self.readers.send_modify(|readers| readers.count += 1);
        ReaderGuard(self.readers.clone())
    }

    /// Lets the stream run to its end, with or without readers.
    pub(crate) fn detach(&self) {
        self.readers
            .send_modify(|readers| readers.policy = UnreadPolicy::RunToEnd);
    }

    /// Completes when there was no reader for the whole grace time. Never completes for a detached
    /// stream.
    pub(crate) async fn wait_until_abandoned(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        let is_abandoned = |readers: &Readers| {
            readers.count == 0 && readers.policy == UnreadPolicy::CancelAfterGrace
        };
        loop {
            // Cannot fail, because `self` holds the sender.
            let Ok(left) = readers
                .wait_for(is_abandoned)
                .await
                .map(|readers| readers.left)
            else {
                return;
            };
            // A reader that came and left between two polls has changed `left`.
            let change = readers.wait_for(|readers| !is_abandoned(readers) || readers.left != left);
            // Boxed, because a stream that is being read never gets here.
            let change = Box::pin(tokio::time::timeout_at(left + grace, change));
            if change.await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::time::{advance, sleep};

    const GRACE: Duration = Duration::from_secs(60);
    const ALMOST: Duration = Duration::from_secs(59);

    #[tokio::test(start_paused = true)]
    async fn stream_is_abandoned_after_the_grace_time_without_readers() {
        let readers = ReaderCount::new(UnreadPolicy::CancelAfterGrace);
        let mut abandoned = Box::pin(readers.wait_until_abandoned(GRACE));
        let first = readers.add_reader();
        assert!(abandoned.as_mut().now_or_never().is_none());
        sleep(GRACE * 10).await;
        assert!(abandoned.as_mut().now_or_never().is_none(), "it is read");
        drop(first);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        // A reader that comes in time and leaves again restarts the grace time.
        drop(readers.add_reader());
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE - ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn last_of_several_readers_counts_and_detached_stream_is_never_abandoned() {
        let readers = ReaderCount::new(UnreadPolicy::CancelAfterGrace);
        let (one, other) = (readers.add_reader(), readers.add_reader());
        let mut abandoned = Box::pin(readers.wait_until_abandoned(GRACE));
        drop(one);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE * 2).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        drop(other);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        readers.detach();
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE * 2).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
    }
}
