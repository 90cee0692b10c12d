//! A gate at which an answer waits.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Closed until a test opens it; open for all afterwards.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets everything through.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits until it is open.
    pub(super) async fn pass(&self) {
        // No permit is ever given: the only way on is that the gate opens.
        let _ = self.0.acquire().await;
    }
}
