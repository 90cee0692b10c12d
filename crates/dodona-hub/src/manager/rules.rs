//! Keeps the rule engine in step with the plugins that are active.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use dodona_plugin::{DroppedNotification, RuleRefresh, RuleSource, RuleTrust};
use dodona_proto::{PluginName, PluginState, PluginStatus};

use super::{Candidate, Plan, PluginManager, Sources};
use crate::trust::folder;

/// The rule files of active plugins, and the engine that evaluates them.
#[derive(Default)]
pub(super) struct RulesInForce {
    sources: ArcSwap<Vec<RuleSource>>,
    engine: Mutex<Option<Weak<dyn RuleRefresh>>>,
}

impl RulesInForce {
    /// Adds sources to those in force. Returns once the engine evaluates them.
    pub(super) async fn add(&self, new: &[RuleSource]) {
        let old = self.sources.load_full();
        let mut all = new.to_vec();
        // Rules of a plugin that is being replaced stay until its methods are gone.
        let is_gone = |old: &&RuleSource| new.iter().all(|new| new.plugin != old.plugin);
        all.extend(old.iter().filter(is_gone).cloned());
        self.sources.store(all.into());
        self.refresh().await;
    }

    /// Leaves only these sources in force.
    pub(super) async fn replace(&self, sources: Vec<RuleSource>) {
        if **self.sources.load() != sources {
            self.sources.store(sources.into());
            self.refresh().await;
        }
    }

    /// Returns once the engine has read all sources again.
    pub(super) async fn refresh(&self) {
        if let Some(engine) = self.engine() {
            engine.refresh().await;
        }
    }

    fn engine(&self) -> Option<Arc<dyn RuleRefresh>> {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.as_ref().and_then(Weak::upgrade)
    }
}

impl PluginManager {
    /// The rules of active plugins.
    pub(crate) fn rule_sources(&self) -> Vec<RuleSource> {
        self.rules.sources.load().to_vec()
    }

    /// Sets the engine that is refreshed before a plugin counts as active.
    pub(crate) fn set_rule_engine(&self, engine: Weak<dyn RuleRefresh>) {
        let mut known = self
            .rules
            .engine
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = Some(engine);
    }

    /// Passes a notification that is not delivered on to the rule log.
    pub(crate) fn notification_dropped(&self, dropped: DroppedNotification) {
        if let Some(engine) = self.rules.engine() {
            engine.notification_dropped(dropped);
        }
    }
}

impl Sources {
    /// Why no tool may run: a plugin that must always be active is not.
    pub(super) fn tools_disabled_reason(
        &self,
        statuses: &BTreeMap<PluginName, PluginStatus>,
    ) -> Option<String> {
        let exports = self.modules.iter().flat_map(|module| &module.exports);
        let mut essential = exports.filter(|export| export.plugin.is_essential());
        essential.find_map(|export| {
            let name = export.plugin.name();
            let status = statuses.get(name);
            if status.is_some_and(|status| status.state == PluginState::Active) {
                return None;
            }
            let reason = status.and_then(|status| status.reason.as_deref());
            let reason = reason.unwrap_or("it is not installed");
            Some(format!("plugin `{name}` is not active: {reason}"))
        })
    }
}

impl Sources {
    /// The rules of the plugins that are active.
    pub(super) fn rule_sources(
        &self,
        plan: &Plan,
        statuses: &BTreeMap<PluginName, PluginStatus>,
    ) -> Vec<RuleSource> {
        let active = plan.candidates.values().filter(|candidate| {
            let status = statuses.get(&candidate.name);
            status.is_some_and(|status| status.state == PluginState::Active)
        });
        let with_rules = active.filter(|candidate| !candidate.rules.is_empty());
        with_rules
            .map(|candidate| {
                let (base, trust) = self.trust_in(candidate);
                RuleSource {
                    plugin: candidate.name.clone(),
                    project: candidate.project.clone(),
                    files: candidate.rules.clone(),
                    trust,
                    base,
                }
            })
            .collect()
    }

    /// Which contents of a plugin's rule files count. The user's own plugins may change at any time;
    /// those of a project are as they were trusted, also while they are being read again.
    fn trust_in(&self, candidate: &Candidate) -> (PathBuf, RuleTrust) {
        let root = match &candidate.project {
            None => return (PathBuf::new(), RuleTrust::Followed),
            Some(project) => self.projects.root(project),
        };
        match root {
            Some(root) => (folder(&root), self.trust.of_files(&root)),
            None => (PathBuf::new(), RuleTrust::Untrusted),
        }
    }
}
