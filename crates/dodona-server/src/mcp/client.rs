//! What the client of a request can do for us, and what it wants to hear.

#![expect(
    deprecated,
    reason = "clients before 2026-07-28 have sampling, roots and logging"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use dodona_proto::{HubStreamItem, ItemBody};
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, InputRequest, LoggingLevel,
    LoggingMessageNotificationParam, ProtocolVersion, RequestId, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle};
use rmcp::{Peer, RoleServer};
use serde_json::Value;

use super::subscriptions::Subscriptions;

/// What is kept of a client with a session.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) subscriptions: Subscriptions,
    level: Mutex<Option<LoggingLevel>>,
}

impl Kept {
    /// From which level on it wants to hear what happens.
    pub(super) fn listen_from(&self, level: LoggingLevel) {
        *self.level() = Some(level);
    }

    fn level(&self) -> MutexGuard<'_, Option<LoggingLevel>> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that a client was sent.
pub(super) type Asked = RequestHandle<RoleServer>;

/// The client of one request.
pub(super) struct Client {
    peer: Peer<RoleServer>,
    can: ClientCapabilities,
    /// Whether it can be sent requests of ours; without a session a result says what is needed.
    pub(super) has_session: bool,
    level: Option<LoggingLevel>,
    /// Whether its user may answer what a person is asked.
    pub(super) may_agree: bool,
}

impl Client {
    pub(super) fn of(context: &RequestContext<RoleServer>, kept: &Kept, may_agree: bool) -> Self {
        let has_session = has_session(context);
        let level = match has_session {
            true => *kept.level(),
            false => context.meta.log_level(),
        };
        Self {
            peer: context.peer.clone(),
            can: context.client_capabilities().unwrap_or_default(),
            has_session,
            level,
            may_agree,
        }
    }

    /// Whether it said that it can answer a request.
    pub(super) fn can(&self, request: &InputRequest) -> bool {
        match request {
            InputRequest::Elicitation(_) => self.can_show_forms(),
            InputRequest::CreateMessage(_) => self.can.sampling.is_some(),
            InputRequest::ListRoots(_) => self.can.roots.is_some(),
            _ => false,
        }
    }

    /// Whether it can show its user a form. One that does not say which kind it has means that.
    pub(super) fn can_show_forms(&self) -> bool {
        let shown = self.can.elicitation.as_ref();
        shown.is_some_and(|shown| shown.form.is_some() || shown.url.is_none())
    }

    /// Whether what a call says on its way matters to it, and not the result alone.
    pub(super) fn follows(&self) -> bool {
        let asked =
            self.can_show_forms() || self.can.sampling.is_some() || self.can.roots.is_some();
        asked || self.level.is_some()
    }

    /// Sends it a request. `None` if it cannot be reached any more.
    pub(super) async fn ask(&self, request: InputRequest) -> Option<Asked> {
        let request = match request {
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return None,
        };
        let options = PeerRequestOptions::no_options();
        self.peer
            .send_cancellable_request(request, options)
            .await
            .ok()
    }

    /// Tells it that a request need not be answered any more.
    pub(super) async fn take_back(&self, request: RequestId) {
        let reason = Some("answered elsewhere".to_owned());
        let told = CancelledNotificationParam::new(Some(request), reason);
        // A client that is gone is noticed elsewhere.
        let _ = self.peer.notify_cancelled(told).await;
    }

    /// Tells it what happens in a call, if it wants to hear of that: how it goes, and what went
    /// wrong without ending it.
    pub(super) async fn log(&self, item: &HubStreamItem) {
        let Some(from) = self.level else {
            return;
        };
        let (level, said) = match &item.body {
            ItemBody::Progress { message, .. } => (LoggingLevel::Info, message),
            ItemBody::Error {
                error,
                recoverable: true,
                ..
            } => (LoggingLevel::Warning, error),
            _ => return,
        };
        if severity(level) < severity(from) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(level, said.as_str().into())
            .with_logger(item.plugin_path.to_string());
        // A client that is gone is noticed elsewhere.
        let _ = self.peer.notify_logging_message(message).await;
    }
}

/// Whether a request belongs to a session, as all did before 2026-07-28.
pub(super) fn has_session(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str())
}

/// What a client says to a request; `None` if it refuses.
pub(super) async fn answer(asked: Asked) -> Option<Value> {
    match asked.await_response().await {
        Ok(answer) => serde_json::to_value(answer).ok(),
        Err(error) => {
            tracing::debug!(%error, "an MCP client does not answer what it was asked");
            None
        }
    }
}

/// The levels are those of syslog, mildest first.
fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
