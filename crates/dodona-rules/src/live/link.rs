//! The rule engine, as the host sees it.

use std::sync::{Arc, Weak};

use dodona_plugin::{BoxFuture, DroppedNotification, RuleRefresh};

use super::run::Live;

/// Holds the engine weakly, because the host outlives it.
pub(crate) struct EngineLink(pub(crate) Weak<Live>);

impl RuleRefresh for EngineLink {
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(live) = self.0.upgrade() else { return };
            let book = Arc::clone(&live.book);
            let looked = tokio::task::spawn_blocking(move || book.look_if_used()).await;
            if looked.is_err() {
                tracing::error!("reading the rules panicked; the previous ones stay in force");
            }
        })
    }

    fn notification_dropped(&self, dropped: DroppedNotification) {
        if let Some(live) = self.0.upgrade() {
            live.log.note_dropped(dropped.into());
        }
    }
}
