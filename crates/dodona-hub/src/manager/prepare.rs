//! Preparing plugins that take long to start, next to each other and while calls are served.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::Plugin;
use dodona_proto::{PluginName, PluginState};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::PluginManager;
use super::discover::Candidate;
use super::last_good::Refusal;
use super::replace_methods::ActivationId;

/// The plugins that are being prepared, and those whose preparation has ended.
#[derive(Default)]
pub(super) struct Preparations {
    all: Mutex<HashMap<PluginName, Preparation>>,
    /// Cancelled when the hub stops.
    stop: CancellationToken,
}

struct Preparation {
    fingerprint: String,
    /// The instance that is being prepared: it is the one to be activated.
    plugin: Arc<dyn Plugin>,
    state: watch::Receiver<Prepared>,
}

/// How far a preparation is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Prepared {
    Running,
    Ready,
    Failed(String),
}

impl Preparations {
    fn all(&self) -> MutexGuard<'_, HashMap<PluginName, Preparation>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets failures, so that the plugins are tried again: all of them, or one.
    pub(super) fn forget_failures(&self, only: Option<&PluginName>) {
        let is_over = |one: &mut Preparation| matches!(*one.state.borrow(), Prepared::Failed(_));
        self.all()
            .retain(|name, one| !is_meant(only, name) || !is_over(one));
    }

    /// Waits until no preparation is running, or until that of one plugin is over. Whether any was
    /// running.
    pub(super) async fn wait(&self, only: Option<&PluginName>) -> bool {
        let mut running: Vec<_> = {
            let all = self.all();
            let meant = all.iter().filter(|(name, _)| is_meant(only, name));
            let states = meant.map(|(_, one)| one.state.clone());
            states
                .filter(|state| *state.borrow() == Prepared::Running)
                .collect()
        };
        for state in &mut running {
            // An error means that the task is gone, which is an end too.
            let _ = state.wait_for(|state| *state != Prepared::Running).await;
        }
        !running.is_empty()
    }

    /// Ends what is running.
    pub(super) fn stop(&self) {
        self.stop.cancel();
        self.all().clear();
    }
}

impl PluginManager {
    /// The instance to activate now. A plugin that must be prepared first is refused as `starting`
    /// until that is done.
    pub(super) fn prepared(
        &self,
        candidate: &Candidate,
        plugin: &Arc<dyn Plugin>,
    ) -> Result<Arc<dyn Plugin>, Refusal> {
        let mut all = self.preparations.all();
        let known = all.get(&candidate.name);
        let known = known.filter(|known| known.fingerprint == candidate.fingerprint);
        let state = known.map(|known| known.state.borrow().clone());
        match state {
            Some(Prepared::Running) => return Err(starting()),
            Some(Prepared::Failed(why)) => return Err(Refusal::failed(why)),
            Some(Prepared::Ready) => {
                let ready = all.remove(&candidate.name);
                return Ok(ready.map_or_else(|| Arc::clone(plugin), |ready| ready.plugin));
            }
            None => {}
        }
        let context = self.context(candidate, &ActivationId::default());
        if !plugin.needs_preparation(&context) {
            return Ok(Arc::clone(plugin));
        }
        let (tell, state) = watch::channel(Prepared::Running);
        let preparation = Preparation {
            fingerprint: candidate.fingerprint.clone(),
            plugin: Arc::clone(plugin),
            state,
        };
        all.insert(candidate.name.clone(), preparation);
        drop(all);
        let (hub, plugin) = (self.host.hub.clone(), Arc::clone(plugin));
        let timeout = self.services.config.activation_timeout;
        let stop = self.preparations.stop.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let work = AssertUnwindSafe(plugin.prepare(context)).catch_unwind();
            let done = stop.run_until_cancelled(tokio::time::timeout(timeout, work));
            let failed = match done.await {
                None => return,
                Some(Ok(Ok(Ok(())))) => None,
                Some(Ok(Ok(Err(error)))) => Some(error.to_string()),
                Some(Ok(Err(_))) => Some("it panicked while starting".to_owned()),
                Some(Err(_)) => Some("it did not start in time".to_owned()),
            };
            let waited = began.elapsed().as_secs_f32();
            tell.send_replace(match failed {
                None => Prepared::Ready,
                Some(why) => Prepared::Failed(format!("{why} (waited {waited:.1} s)")),
            });
            if let Some(hub) = hub.upgrade() {
                hub.manager.reload_once(&hub.snapshot).await;
            }
        });
        Err(starting())
    }
}

fn is_meant(only: Option<&PluginName>, name: &PluginName) -> bool {
    only.is_none_or(|only| only == name)
}

fn starting() -> Refusal {
    (PluginState::Starting, "it is starting".to_owned()).into()
}
