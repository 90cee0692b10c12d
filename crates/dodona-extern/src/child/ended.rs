//! That a connection is over, and why.

use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// The end of a connection. Many may notice it; the first one who knows a reason is believed.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    over: CancellationToken,
    why: Mutex<Option<String>>,
}

impl Ended {
    /// It is over for a reason.
    pub(crate) fn because(&self, why: &str) {
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| why.to_owned());
        self.over.cancel();
    }

    /// It is over; somebody else may know why.
    pub(crate) fn over(&self) {
        self.over.cancel();
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Waits for the end.
    pub(crate) async fn wait(&self) {
        self.over.cancelled().await;
    }

    /// Why it is over.
    pub(crate) fn why(&self) -> String {
        let known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .clone()
            .unwrap_or_else(|| "the connection was closed".to_owned())
    }
}
