//! Other methods for a plugin that is active.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use dodona_plugin::{BoxFuture, Method, MethodHost};
use dodona_proto::PluginName;

use super::{PluginManager, freeze};
use crate::hub::HubInner;
use crate::router::{Lease, RouterSnapshot};

/// What tells one activation of a plugin from another.
#[derive(Debug, Clone, Default)]
pub(super) struct Life(Arc<()>);

impl Life {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a plugin gets to renew its methods with. It holds the hub weakly: the hub holds the plugin.
pub(super) struct Renewal {
    pub(super) hub: Weak<HubInner>,
    pub(super) name: PluginName,
    pub(super) life: Life,
}

impl MethodHost for Renewal {
    fn replace(&self, methods: Vec<Method>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            let hub = self.hub.upgrade().ok_or("the hub is gone")?;
            hub.manager.replace(self, methods, &hub.snapshot).await
        })
    }
}

impl PluginManager {
    /// Swaps a snapshot in that differs by one plugin's methods. Only the activation that is asked
    /// for is meant: one that was replaced meanwhile has no say over its successor.
    async fn replace(
        &self,
        renewal: &Renewal,
        methods: Vec<Method>,
        snapshot: &ArcSwap<RouterSnapshot>,
    ) -> Result<(), String> {
        let mut living = self.living.lock().await;
        let view = self.view.load();
        let mine = living
            .active
            .iter_mut()
            .find(|active| active.life.is(&renewal.life));
        let (Some(active), Some(candidate)) = (mine, view.candidates.get(&renewal.name)) else {
            return Err("the plugin is not active any more".to_owned());
        };
        // A plugin without methods has let go of its lease.
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
        let frozen = freeze(&living.active, &living.registry, &view.statuses);
        snapshot.store(Arc::new(frozen));
        Ok(())
    }
}
