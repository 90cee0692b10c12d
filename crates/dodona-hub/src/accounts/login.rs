//! One-time login codes for the page.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dodona_proto::{CallError, Scopes, UserId};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::secret::random_hex;

/// Lifetime of a code.
const LIFETIME: Duration = Duration::from_secs(300);

/// Maximum number of unused codes. The oldest are removed first.
const MOST: usize = 64;

/// Unused codes, in memory only, so a restart invalidates them. Looked up by hash, so that the lookup time
/// reveals nothing about a code.
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
