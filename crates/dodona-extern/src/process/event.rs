//! Callbacks of a process for events.

use std::sync::Arc;

use dodona_plugin::EventHandler;
use serde_json::json;

use super::runner::Runner;
use super::scope::Scope;
use crate::declare::EventSpec;
use crate::services::Services;

/// A handler that hands events to the process, one after the other.
pub(super) fn event_handler(
    runner: &Arc<Runner>,
    services: &Services,
    spec: &EventSpec,
) -> Result<EventHandler, String> {
    let (runner, services) = (Arc::clone(runner), services.clone());
    spec.handler(move |event| {
        let (runner, services) = (Arc::clone(&runner), services.clone());
        async move {
            let settings = match &event.user {
                Some(user) => services.settings.of(user),
                None => services.settings.values().clone(),
            };
            let request = json!({ "event": &*event, "settings": settings });
            let peer = runner.peer().await?;
            let answer = peer.request("event", request, Scope::Event(event)).await;
            answer.map(drop).map_err(|failure| failure.to_string())
        }
    })
}
