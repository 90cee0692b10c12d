//! The event bus: journaled first, then told.

use std::sync::Arc;

use dodona_plugin::activation::EventDraft;
use dodona_plugin::{BoxFuture, CallError, EventBus, Lagged, Subscription};
use dodona_proto::Event;
use dodona_store::journal::Journal;
use jiff::Timestamp;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

/// The bus of one hub. The journal's pump does the telling, so subscribers see events in the
/// order in which they are stored.
pub(crate) struct Bus {
    journal: Journal,
}

impl Bus {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal }
    }
}

impl EventBus for Bus {
    fn publish<'a>(&'a self, draft: EventDraft<'a>) -> BoxFuture<'a, Result<(), CallError>> {
        let event = Event {
            id: draft.id.unwrap_or_else(Uuid::now_v7),
            kind: draft.kind.to_owned(),
            source: draft.source.to_owned(),
            severity: draft.severity,
            payload: draft.payload,
            timestamp: Timestamp::now(),
            user: draft.behalf.map(|behalf| behalf.user.clone()),
            project: draft.behalf.and_then(|behalf| behalf.project.cloned()),
            call: draft.behalf.and_then(|behalf| Some(behalf.call?.call_id)),
        };
        let is_told_again = draft.id.is_some();
        Box::pin(async move {
            self.journal.publish(event).await?;
            if is_told_again {
                self.journal.flush().await?;
            }
            Ok(())
        })
    }

    fn subscribe(&self, prefix: &str) -> Box<dyn Subscription> {
        Box::new(Place {
            prefix: prefix.to_owned(),
            events: self.journal.events(),
        })
    }
}

struct Place {
    prefix: String,
    events: broadcast::Receiver<Arc<Event>>,
}

impl Place {
    fn wants(&self, kind: &str) -> bool {
        match kind.strip_prefix(self.prefix.as_str()) {
            Some(rest) => self.prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        }
    }
}

impl Subscription for Place {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<Event>, Lagged>>> {
        Box::pin(async move {
            loop {
                match self.events.recv().await {
                    Ok(event) if self.wants(&event.kind) => return Some(Ok(event)),
                    Ok(_) => {}
                    Err(RecvError::Lagged(missed)) => return Some(Err(Lagged(missed))),
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }
}
