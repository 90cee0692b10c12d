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
