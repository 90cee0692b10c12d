//! Who is reading a stream.

use std::time::Duration;

use tokio::sync::watch;

use crate::request::Keep;

/// Counts the readers of a running stream, so that one nobody reads can be ended.
pub(crate) struct Attendance {
    readers: watch::Sender<Readers>,
}

#[derive(Clone, Copy)]
struct Readers {
    count: usize,
    keep: Keep,
}

/// One reader; leaves when dropped.
pub(crate) struct Attendant(watch::Sender<Readers>);

impl Drop for Attendant {
    fn drop(&mut self) {
        self.0.send_modify(|readers| readers.count -= 1);
    }
}

impl Attendance {
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            readers: watch::Sender::new(Readers { count: 0, keep }),
        }
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
            let _ = readers.wait_for(alone).await;
            let back = readers.wait_for(|readers| !alone(readers));
            if tokio::time::timeout(grace, back).await.is_err() {
                return;
            }
        }
    }
}
