//! Replacing the methods of an active plugin.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use dodona_plugin::{BoxFuture, Method, MethodHost};
use dodona_proto::PluginName;

use super::{PluginManager, freeze};
use crate::hub::HubInner;
use crate::router::{Lease, RouterSnapshot};

/// Identifies one activation of a plugin.
#[derive(Debug, Clone, Default)]
pub(super) struct ActivationId(Arc<()>);

impl ActivationId {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The handle with which a plugin replaces its methods. Holds the hub weakly, because the hub holds the plugin.
pub(super) struct MethodReplacer {
    pub(super) hub: Weak<HubInner>,
    pub(super) name: PluginName,
    pub(super) activation: ActivationId,
}

impl MethodHost for MethodReplacer {
    fn replace(&self, methods: Vec<Method>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            let hub = self.hub.upgrade().ok_or("the server is stopping")?;
            hub.manager.replace(self, methods, &hub.snapshot).await
        })
    }
}

impl PluginManager {
    /// Installs a snapshot that differs in the methods of one plugin. Applies only to the given activation:
    /// one that was replaced meanwhile must not change its successor.
    async fn replace(
        &self,
        replacer: &MethodReplacer,
        methods: Vec<Method>,
        snapshot: &ArcSwap<RouterSnapshot>,
    ) -> Result<(), String> {
        let mut running = self.running.lock().await;
        let view = self.view.load();
        let mine = running
            .active
            .iter_mut()
            .find(|active| active.activation.is(&replacer.activation));
        let (Some(active), Some(candidate)) = (mine, view.candidates.get(&replacer.name)) else {
            return Err("the plugin is no longer active".to_owned());
        };
        // A plugin without methods has dropped its lease.
        let lease = match active.lease.upgrade() {
            Some(lease) => lease,
            None => {
                let lease = Arc::new(Lease::default());
                active.unused = lease.unused.clone();
                active.lease = Arc::downgrade(&lease);
                lease
            }
        };
        active.routes = self
            .services
            .routes(candidate, methods, &lease, &active.limits)?;
        let frozen = freeze(&running.active, &running.registry, &view.statuses);
        snapshot.store(Arc::new(frozen));
        Ok(())
    }
}
