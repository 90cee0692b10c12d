//! Gathering callbacks, and the frozen set of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_proto::{HookPoint, PluginName};
use serde::Serialize;

use crate::firing::{Fired, Firing};
use crate::hook::Hook;
use crate::list::Who;
use crate::order::{Placed, order};
use crate::point::{self, Lists, Point, Visitor};
use crate::trace::{RunRecord, Trace};

/// Names a registered callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookId(u64);

/// Gathers callbacks until it is frozen.
#[derive(Default)]
pub struct HookRegistry {
    hooks: BTreeMap<HookId, (PluginName, Hook)>,
    last: u64,
    trace: Arc<Trace>,
}

impl HookRegistry {
    /// One that records where an earlier one did.
    pub fn recording_to(trace: Arc<Trace>) -> Self {
        Self {
            trace,
            ..Self::default()
        }
    }

    /// Adds a callback of a plugin.
    pub fn register(&mut self, plugin: &PluginName, hook: Hook) -> HookId {
        self.last += 1;
        let id = HookId(self.last);
        self.hooks.insert(id, (plugin.clone(), hook));
        id
    }

    /// Takes a callback out again; tells whether it was there.
    pub fn unregister(&mut self, id: HookId) -> bool {
        self.hooks.remove(&id).is_some()
    }

    /// Takes out all callbacks of a plugin.
    pub fn unregister_all(&mut self, plugin: &PluginName) {
        self.hooks.retain(|_, (owner, _)| owner != plugin);
    }

    /// Orders the callbacks for good. What was frozen before stays as it is.
    pub fn freeze(&self) -> Hooks {
        let hooks: Vec<_> = self.hooks.iter().collect();
        let placed: Vec<Placed<'_>> = hooks
            .iter()
            .map(|(_, (plugin, hook))| Placed {
                plugin,
                terms: &hook.terms,
            })
            .collect();
        let (mut lists, mut infos) = (Lists::default(), Vec::new());
        for at in order(&placed) {
            let (id, (plugin, hook)) = hooks[at];
            let who = Who {
                plugin: plugin.clone(),
                id: id.0,
            };
            hook.install(&mut lists, who);
            infos.push((
                *id,
                HookSubscription {
                    hook: hook.terms.point,
                    plugin: plugin.clone(),
                    name: hook.terms.name.clone(),
                    priority: hook.terms.priority,
                    runs: 0,
                },
            ));
        }
        Hooks {
            lists,
            infos,
            trace: Arc::clone(&self.trace),
        }
    }
}

/// A registered callback, as listings show it. The list that has it is in the order of calling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookSubscription {
    /// At which point.
    pub hook: HookPoint,
    /// Whose.
    pub plugin: PluginName,
    /// Which of the plugin's, where it says.
    pub name: Option<String>,
    /// Lower runs earlier.
    pub priority: i32,
    /// How often it was run.
    pub runs: u64,
}

/// Every callback there is, in order. Read without a lock.
#[derive(Default)]
pub struct Hooks {
    lists: Lists,
    infos: Vec<(HookId, HookSubscription)>,
    trace: Arc<Trace>,
}

impl Hooks {
    /// Runs the callbacks of a point over a payload. Nothing that they do, panicking included,
    /// reaches the one who fires but what comes back.
    #[doc(alias("invoke", "invoke_chain"))]
    #[inline]
    pub fn fire<P: Point>(&self, payload: P::Payload) -> Firing<'_, P> {
        Firing::new(P::list(&self.lists), &self.trace, payload)
    }

    /// Asks about something that was, as it is replayed: nothing is recorded of it, and callbacks
    /// that are [live](crate::Hook::live) are not asked.
    pub async fn ask_again<P: Point>(&self, payload: P::Payload) -> Fired<P::Payload> {
        P::list(&self.lists).ask_again(payload).await
    }

    /// The same where the payload is dear: it is made only when somebody would see it.
    #[inline]
    pub async fn fire_with<P: Point>(
        &self,
        payload: impl FnOnce() -> P::Payload,
    ) -> Option<Fired<P::Payload>> {
        match self.has_subscribers::<P>() {
            true => Some(self.fire::<P>(payload()).await),
            false => None,
        }
    }

    /// Every callback, by point and in the order in which they run.
    pub fn list(&self) -> Vec<HookSubscription> {
        let mut infos: Vec<HookSubscription> = self
            .infos
            .iter()
            .map(|(id, info)| {
                let runs = point::visit(info.hook, Runs(&self.lists, id.0));
                HookSubscription {
                    runs,
                    ..info.clone()
                }
            })
            .collect();
        let place = |hook| HookPoint::ALL.iter().position(|point| *point == hook);
        infos.sort_by_key(|info| place(info.hook));
        infos
    }

    /// What callbacks did of late, oldest first.
    pub fn recent(&self, limit: usize) -> Vec<RunRecord> {
        self.trace.recent(limit)
    }

    /// Where runs are recorded.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    #[inline]
    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }
}

/// Looks up how often a callback ran.
struct Runs<'a>(&'a Lists, u64);

impl Visitor for Runs<'_> {
    type Output = u64;

    fn visit<P: Point>(self) -> u64 {
        P::list(self.0).runs(self.1)
    }
}
