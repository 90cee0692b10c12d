//! Threads that start with the first request and end with the store.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

/// One or more threads behind one bounded queue.
pub(crate) struct Worker<M> {
    state: Mutex<State<M>>,
}

enum State<M> {
    Idle,
    Running {
        queue: mpsc::Sender<M>,
        threads: Vec<JoinHandle<()>>,
    },
    Closed,
}

/// Why there is no queue to send to.
pub(crate) enum NoQueue {
    Closed,
    Spawn(io::Error),
}

impl<M> Worker<M> {
    pub(crate) fn new() -> Self {
        Worker {
            state: Mutex::new(State::Idle),
        }
    }

    /// The queue, whose threads `start` starts if this is the first request.
    pub(crate) fn queue(
        &self,
        length: usize,
        start: impl FnOnce(mpsc::Receiver<M>) -> io::Result<Vec<JoinHandle<()>>>,
    ) -> Result<mpsc::Sender<M>, NoQueue> {
        let mut state = self.lock();
        match &*state {
            State::Running { queue, .. } => Ok(queue.clone()),
            State::Closed => Err(NoQueue::Closed),
            State::Idle => {
                let (queue, requests) = mpsc::channel(length.max(1));
                let threads = start(requests).map_err(NoQueue::Spawn)?;
                *state = State::Running {
                    queue: queue.clone(),
                    threads,
                };
                Ok(queue)
            }
        }
    }

    /// Whether there has been a request, and the threads have not been told to end.
    pub(crate) fn is_running(&self) -> bool {
        matches!(&*self.lock(), State::Running { .. })
    }

    /// Takes no further requests. The threads returned end once they have served those queued.
    pub(crate) fn close(&self) -> Vec<JoinHandle<()>> {
        match std::mem::replace(&mut *self.lock(), State::Closed) {
            State::Running { threads, .. } => threads,
            State::Idle | State::Closed => Vec::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        // Each change of state is one assignment, so a panic cannot leave half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
