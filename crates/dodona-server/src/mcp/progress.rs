//! What a client is told while a call works.

use dodona_proto::{ApprovalAnswer, ApprovalRequest, HubStreamItem, ItemBody};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};

/// By how much progress grows where nobody knows how far it is: the protocol wants it to grow.
const STEP: f64 = 0.01;

/// All of the work.
const WHOLE: f64 = 100.0;

/// Tells one request's progress, if its sender asked for that.
pub(super) struct Progress {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    reached: f64,
    said: String,
}

impl Progress {
    pub(super) fn new(peer: &Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self {
            to: token.map(|token| (peer.clone(), token)),
            reached: 0.0,
            said: "working".to_owned(),
        }
    }

    /// Whether anybody wants to know.
    pub(super) fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Tells what an item says about how the work goes.
    pub(super) async fn item(&mut self, item: &HubStreamItem) {
        if let Some((message, percentage)) = news(item) {
            self.said = message;
            self.tell(percentage).await;
        }
    }

    /// Says again what was said last, so that a client does not give up on a call that waits.
    pub(super) async fn again(&mut self) {
        self.tell(None).await;
    }

    async fn tell(&mut self, percentage: Option<f64>) {
        let Some((peer, token)) = &self.to else {
            return;
        };
        self.reached = percentage.unwrap_or(0.0).max(self.reached + STEP);
        let mut told = ProgressNotificationParam::new(token.clone(), self.reached)
            .with_message(self.said.clone());
        if percentage.is_some() && self.reached <= WHOLE {
            told = told.with_total(WHOLE);
        }
        // A client that is gone is noticed elsewhere.
        let _ = peer.notify_progress(told).await;
    }
}

/// What an item says about how the work goes, and how far it is.
fn news(item: &HubStreamItem) -> Option<(String, Option<f64>)> {
    match &item.body {
        ItemBody::Progress {
            message,
            percentage,
        } => {
            // Only the whole call's share is a share of the whole.
            let share = percentage
                .filter(|_| item.call_id.depth() == 0)
                .map(f64::from);
            Some((message.clone(), share))
        }
        ItemBody::Data { content_type, data } => match content_type.as_ref() {
            ApprovalRequest::CONTENT_TYPE => {
                let message = data["message"].as_str().unwrap_or("a person must agree");
                let id = data["approval_id"].as_str().unwrap_or_default();
                let how = format!("answer with `dodona approvals approve {id}` or on the page");
                Some((format!("waiting for a person: {message}; {how}"), None))
            }
            ApprovalAnswer::CONTENT_TYPE => {
                let state = data["state"].as_str().unwrap_or("answered");
                Some((format!("a person has answered: {state}"), None))
            }
            "ToolCall" => Some((data["name"].as_str()?.to_owned(), None)),
            _ => None,
        },
        ItemBody::Error { .. } | ItemBody::Done { .. } => None,
    }
}
