//! Who is reading a stream.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::request::Keep;

/// Counts the readers of a running stream, so that one nobody reads can be ended.
pub(crate) struct Attendance {
    readers: watch::Sender<Readers>,
}

#[derive(Clone, Copy)]
struct Readers {
    count: usize,
    keep: Keep,
    /// When the last one left.
    left: Instant,
}

/// One reader; leaves when dropped.
pub(crate) struct Attendant(watch::Sender<Readers>);

impl Drop for Attendant {
    fn drop(&mut self) {
        self.0.send_modify(|readers| {
            readers.count -= 1;
            readers.left = Instant::now();
        });
    }
}

impl Attendance {
    pub(crate) fn new(keep: Keep) -> Self {
        let (count, left) = (0, Instant::now());
        let readers = watch::Sender::new(Readers { count, keep, left });
        Self { readers }
    }

    pub(crate) fn attend(&self) -> Attendant {
        self.readers.send_modify(|readers| readers.count += 1);
        Attendant(self.readers.clone())
    }

    /// Lets the stream run to its end whether anybody reads it or not.
    pub(crate) fn detach(&self) {
        self.readers
            .send_modify(|readers| readers.keep = Keep::Detached);
    }

    /// Completes when nobody has read for the whole grace time.
    pub(crate) async fn abandoned(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        let alone = |readers: &Readers| readers.count == 0 && readers.keep == Keep::Grace;
        loop {
            // The sender is `self`, so waiting does not fail.
            let Ok(left) = readers.wait_for(alone).await.map(|readers| readers.left) else {
                return;
            };
            // One that came and went unseen has moved the time.
            let news = readers.wait_for(|readers| !alone(readers) || readers.left != left);
            if tokio::time::timeout_at(left + grace, news).await.is_err() {
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
    async fn a_stream_is_abandoned_when_nobody_has_read_for_the_whole_grace_time() {
        let attendance = Attendance::new(Keep::Grace);
        let mut abandoned = Box::pin(attendance.abandoned(GRACE));
        let first = attendance.attend();
        assert!(abandoned.as_mut().now_or_never().is_none());
        sleep(GRACE * 10).await;
        assert!(abandoned.as_mut().now_or_never().is_none(), "it is read");
        drop(first);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        // Somebody comes in time and goes again: the time begins anew.
        drop(attendance.attend());
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE - ALMOST).await;
        assert!(abandoned.as_mut().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_several_readers_counts_and_a_detached_stream_needs_none() {
        let attendance = Attendance::new(Keep::Grace);
        let (one, other) = (attendance.attend(), attendance.attend());
        let mut abandoned = Box::pin(attendance.abandoned(GRACE));
        drop(one);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE * 2).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
        drop(other);
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(ALMOST).await;
        attendance.detach();
        assert!(abandoned.as_mut().now_or_never().is_none());
        advance(GRACE * 2).await;
        assert!(abandoned.as_mut().now_or_never().is_none());
    }
}
