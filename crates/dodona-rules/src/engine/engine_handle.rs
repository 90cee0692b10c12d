//! The handle by which the hub notifies the rule engine.

use std::sync::{Arc, Weak};

use dodona_plugin::{BoxFuture, DroppedNotification, RuleRefresh};

use super::rule_engine::RuleEngine;

/// A weak reference, because the hub outlives the engine.
pub(crate) struct EngineHandle(pub(crate) Weak<RuleEngine>);

impl RuleRefresh for EngineHandle {
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(engine) = self.0.upgrade() else {
                return;
            };
            let store = Arc::clone(&engine.store);
            let scanned = tokio::task::spawn_blocking(move || store.scan_if_loaded()).await;
            if scanned.is_err() {
                tracing::error!("reading the rules panicked; the previous ones stay in force");
            }
        })
    }

    fn notification_dropped(&self, dropped: DroppedNotification) {
        if let Some(engine) = self.0.upgrade() {
            engine.log.note_dropped(dropped.into());
        }
    }
}
