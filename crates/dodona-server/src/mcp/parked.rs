//! Calls that wait for a client without a session to come back with what they asked for.
//!
//! The client gets a word that means nothing to it and brings it along with the answers. The call
//! itself stays here: what it did until then is not done twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_proto::{StreamId, UserId};
use tokio::time::Instant;

use super::question::Question;
use super::running::Running;

/// How long a client may take. As long as a person has to agree to a call, unless set otherwise.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many calls can wait. With one more, the one that waits longest is cancelled.
const MOST: usize = 256;

/// Whose a call is, and what it carries out.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Owner {
    /// Nobody in particular where there is one client only.
    pub(super) user: Option<UserId>,
    pub(super) method: String,
}

/// A call that waits.
struct Waiting {
    owner: Owner,
    since: Instant,
    running: Running,
    question: Question,
}

/// The calls that wait, by the word their client was given. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<HashMap<String, Waiting>>>);

impl Parked {
    /// Keeps a call; by the word that is returned it is found again.
    pub(super) fn put(&self, owner: Owner, running: Running, question: Question) -> String {
        let word = StreamId::random().to_string();
        let waiting = Waiting {
            owner,
            since: Instant::now(),
            running,
            question,
        };
        let mut all = self.all();
        all.insert(word.clone(), waiting);
        if all.len() > MOST {
            let oldest = all.iter().min_by_key(|(_, waiting)| waiting.since);
            let oldest = oldest.map(|(word, _)| word.clone());
            oldest.and_then(|word| all.remove(&word));
        }
        drop(all);
        let (parked, forgotten) = (Arc::downgrade(&self.0), word.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(parked) = parked.upgrade() {
                Self(parked).all().remove(&forgotten);
            }
        });
        word
    }

    /// Takes a call up again. Only who was given its word can, and only for the same work.
    pub(super) fn take(&self, word: &str, owner: &Owner) -> Option<(Running, Question)> {
        let mut all = self.all();
        if all.get(word)?.owner != *owner {
            return None;
        }
        let waiting = all.remove(word)?;
        Some((waiting.running, waiting.question))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
