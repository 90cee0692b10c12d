//! The plugins of this binary.

use std::sync::Arc;

use dodona_agent::AgentPlugin;
use dodona_hub::echo::EchoPlugin;
use dodona_plugin::Plugin;

/// Every plugin, in no particular order. The hub brings its own, `hub`.
pub(crate) fn all() -> Vec<Arc<dyn Plugin>> {
    let mut all = dodona_knowledge::plugins();
    all.push(Arc::new(AgentPlugin::default()));
    all.push(Arc::new(EchoPlugin::default()));
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use dodona_hub::{Hub, HubConfig, LOCAL_USER};
    use dodona_proto::{PluginState, Principal, Scopes, Surface, UserId};
    use serde_json::json;

    #[tokio::test]
    async fn the_openrpc_document_is_the_one_that_is_checked_in() {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start(folder.path(), HubConfig::default(), super::all())
            .await
            .unwrap();
        assert!(
            hub.plugins()
                .iter()
                .all(|plugin| plugin.state == PluginState::Active)
        );
        let user = UserId::new(LOCAL_USER).unwrap();
        let owner = Principal {
            user,
            scopes: Scopes::all(),
            surface: Surface::Cli,
        };
        let mut document = dodona_server::openrpc_document(&hub.methods(&owner));
        document["info"]["version"] = json!("0.0.0");
        let text = format!("{document:#}\n");
        let artefact =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openrpc.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&artefact, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&artefact).unwrap();
        assert!(
            stored == text,
            "docs/reference/openrpc.json is old; run this test with UPDATE=1"
        );
        hub.stop(Duration::from_secs(1)).await;
    }
}
