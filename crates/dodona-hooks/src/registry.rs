//! Collecting callbacks, and the frozen set.

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

/// Id of a registered callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookId(u64);

/// Collects callbacks until it is frozen.
#[derive(Default)]
pub struct HookRegistry {
    hooks: BTreeMap<HookId, (PluginName, Hook)>,
    last: u64,
    trace: Arc<Trace>,
}

impl HookRegistry {
    /// A registry that shares the trace of an earlier one.
    pub fn recording_to(trace: Arc<Trace>) -> Self {
        Self {
            trace,
            ..Self::default()
        }
    }

    /// Registers a callback of a plugin.
    pub fn register(&mut self, plugin: &PluginName, hook: Hook) -> HookId {
        self.last += 1;
        let id = HookId(self.last);
        self.hooks.insert(id, (plugin.clone(), hook));
        id
    }

    /// Removes a callback and returns whether it was registered.
    pub fn unregister(&mut self, id: HookId) -> bool {
        self.hooks.remove(&id).is_some()
    }

    /// Removes all callbacks of a plugin.
    pub fn unregister_all(&mut self, plugin: &PluginName) {
        self.hooks.retain(|_, (owner, _)| owner != plugin);
    }

    /// Sorts the callbacks into an immutable set. Earlier sets are not changed.
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

/// A registered callback, for listings. Lists are in order of execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookSubscription {
    pub hook: HookPoint,
    pub plugin: PluginName,
    /// The name of the callback, if it has one.
    pub name: Option<String>,
    pub priority: i32,
    pub runs: u64,
}

/// All callbacks, in order. Read without a lock.
#[derive(Default)]
pub struct Hooks {
    lists: Lists,
    infos: Vec<(HookId, HookSubscription)>,
    trace: Arc<Trace>,
}

impl Hooks {
    /// Runs the callbacks of a hook point. Failures and panics of callbacks do not reach the caller.
    #[doc(alias("invoke", "invoke_chain"))]
    #[inline]
    pub fn fire<P: Point>(&self, payload: P::Payload) -> Firing<'_, P> {
        Firing::new(P::list(&self.lists), &self.trace, payload)
    }

    /// Runs the callbacks in a replay: nothing is recorded, and [live](crate::Hook::live) callbacks are skipped.
    pub async fn ask_again<P: Point>(&self, payload: P::Payload) -> Fired<P::Payload> {
        P::list(&self.lists).ask_again(payload).await
    }

    /// Like `fire`, but builds the payload only if there is a callback.
    #[inline]
    pub async fn fire_with<P: Point>(
        &self,
        payload: impl FnOnce() -> P::Payload,
    ) -> Option<Fired<P::Payload>> {
        if self.has_subscribers::<P>() {
            Some(self.fire::<P>(payload()).await)
        } else {
            None
        }
    }

    /// Lists all callbacks, by hook point and in order of execution.
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

    /// Recent runs of callbacks, oldest first.
    pub fn recent(&self, limit: usize) -> Vec<RunRecord> {
        self.trace.recent(limit)
    }

    /// The trace in which runs are recorded.
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
