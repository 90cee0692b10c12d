//! Queries of one conversation, one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

/// How many queries may wait for one conversation.
const LONGEST: usize = 16;

/// Who waits for which conversation, first come, first served.
#[derive(Clone, Default)]
pub(crate) struct Queue {
    lines: Arc<Mutex<HashMap<String, Line>>>,
}

struct Line {
    turn: Arc<Semaphore>,
    /// Who is in it, the one at work included.
    length: usize,
}

/// A place in a line; the next one follows when it is dropped.
pub(crate) struct Place {
    queue: Queue,
    key: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl Queue {
    /// Waits until it is this query's turn.
    pub(crate) async fn enter(&self, ctx: &CallCtx, key: String) -> Result<Place, CallError> {
        let turn = self.join(&key)?;
        // From here on the place is given up again whatever happens.
        let mut place = Place {
            queue: self.clone(),
            key,
            permit: None,
        };
        let permit = match Arc::clone(&turn).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let message = "waiting for the query before this one";
                ctx.progress(message, None).await?;
                let waited = turn.acquire_owned().await;
                waited.map_err(|_| CallError::new(ErrorCode::Internal, "the queue is closed"))?
            }
        };
        place.permit = Some(permit);
        Ok(place)
    }

    fn join(&self, key: &str) -> Result<Arc<Semaphore>, CallError> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(key.to_owned()).or_insert_with(|| Line {
            turn: Arc::new(Semaphore::new(1)),
            length: 0,
        });
        if line.length > LONGEST {
            let message = format!("{LONGEST} queries are waiting for this conversation");
            return Err(CallError::new(ErrorCode::TooManyCalls, message)
                .hint("wait, or ask in another conversation"));
        }
        line.length += 1;
        Ok(Arc::clone(&line.turn))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut lines = self
            .queue
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(&self.key) {
            line.length -= 1;
            if line.length == 0 {
                lines.remove(&self.key);
            }
        }
    }
}
