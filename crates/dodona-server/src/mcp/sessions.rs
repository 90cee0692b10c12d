//! The sessions of clients before 2026-07-28: whose they are, and how many there can be.
//!
//! A session is rmcp's; here it gets an owner, because its id alone must not be enough to use it,
//! and a bound, because nobody has to say when they leave.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_proto::UserId;
use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::Instant;

/// How long a session lasts in which nothing happens. Long, because few clients begin anew when
/// theirs is gone, and a question to a person may wait for hours.
const IDLE: Duration = Duration::from_secs(12 * 3600);

/// How many sessions a user can have. With one more, the one that rested longest ends.
pub(super) const PER_USER: usize = 64;

/// How many there can be.
const IN_ALL: usize = 1024;

/// A session that somebody has.
struct Known {
    user: UserId,
    used: Instant,
}

/// Every session there is.
pub(super) struct Sessions {
    local: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Known>>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE);
        Self {
            local,
            known: Mutex::default(),
        }
    }

    /// Whether somebody may use a session, which from now on has just been used. An unknown one
    /// is nobody's.
    pub(super) fn is_of(&self, id: &str, user: &UserId) -> bool {
        match self.known().get_mut(id) {
            Some(known) if known.user == *user => {
                known.used = Instant::now();
                true
            }
            _ => false,
        }
    }

    /// Notes whose a new session is, and ends the one that rested longest where there are too many.
    pub(super) async fn add(&self, id: SessionId, user: &UserId) {
        let one_too_many = {
            let mut known = self.known();
            let used = Instant::now();
            let user = user.clone();
            known.insert(
                id,
                Known {
                    user: user.clone(),
                    used,
                },
            );
            metrics::gauge!("dodona_mcp_sessions").set(count(known.len()));
            let own = known.values().filter(|known| known.user == user).count();
            let mut candidates: Vec<_> = known
                .iter()
                .filter(|(_, known)| own <= PER_USER || known.user == user)
                .collect();
            candidates.sort_by_key(|(_, known)| known.used);
            let oldest = candidates.first().map(|(id, _)| SessionId::clone(id));
            oldest.filter(|_| own > PER_USER || known.len() > IN_ALL)
        };
        if let Some(id) = one_too_many {
            tracing::info!("an MCP session ends, because there are too many");
            if let Err(error) = self.close_session(&id).await {
                tracing::warn!(%error, "an MCP session could not be ended");
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn count(sessions: usize) -> f64 {
    sessions as f64
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        {
            let mut known = self.known();
            known.remove(id);
            metrics::gauge!("dodona_mcp_sessions").set(count(known.len()));
        }
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}
