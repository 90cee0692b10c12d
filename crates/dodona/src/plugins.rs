//! The plugins of this binary.

use std::sync::Arc;

use dodona_hub::echo::EchoPlugin;
use dodona_plugin::Plugin;

/// Every plugin, in no particular order. The hub brings its own, `hub`.
pub(crate) fn all() -> Vec<Arc<dyn Plugin>> {
    vec![Arc::new(EchoPlugin::default())]
}
