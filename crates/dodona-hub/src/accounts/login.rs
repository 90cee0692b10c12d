//! One-time codes that sign a page in.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dodona_proto::{CallError, Scopes, UserId};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::secret::random_hex;

/// How long a link can be used.
const LIFETIME: Duration = Duration::from_secs(300);

/// How many links can be open at once; the oldest go first.
const MOST: usize = 64;

/// Codes that were handed out and not used. Held in memory only: a restart ends them. They are
/// found by their hash, so how long that takes tells nothing about a code.
#[derive(Default)]
pub(super) struct Logins(Mutex<HashMap<[u8; 32], Login>>);

struct Login {
    user: UserId,
    scopes: Scopes,
    until: Instant,
}

impl Logins {
    pub(super) fn issue(&self, user: UserId, scopes: Scopes) -> Result<String, CallError> {
        let code = random_hex::<24>()?;
        let now = Instant::now();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, login| login.until > now);
        if open.len() >= MOST
            && let Some(oldest) = open
                .iter()
                .min_by_key(|(_, login)| login.until)
                .map(|(key, _)| *key)
        {
            open.remove(&oldest);
        }
        open.insert(
            key(&code),
            Login {
                user,
                scopes,
                until: now + LIFETIME,
            },
        );
        Ok(code)
    }

    pub(super) fn redeem(&self, code: &str) -> Option<(UserId, Scopes)> {
        let login = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key(code))?;
        (login.until > Instant::now()).then_some((login.user, login.scopes))
    }
}

fn key(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}
