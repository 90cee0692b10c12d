//! Descriptions of plugins in results.

use std::collections::BTreeMap;

use dodona_hooks::{Hooks, RunRecord};
use dodona_plugin::{CallError, Capabilities, Capability, ErrorCode};
use dodona_proto::{PluginName, PluginState, PluginStatus, Principal, UserId};
use dodona_store::Redactor;

use super::types::{
    InfoResult, ListResult, OrderResult, Ordered, ReloadResult, SettingInfo, TraceParams,
    TraceResult,
};
use crate::hub::HubInner;
use crate::manager::{Candidate, Plan, ROSTER, Reloaded, View};
use crate::methods::admin_scope;

pub(super) fn list(hub: &HubInner, view: &View) -> ListResult {
    ListResult {
        plugins: view.statuses.values().cloned().collect(),
        problems: view.problems.clone(),
        roster: hub.manager.config_dir().map(|dir| dir.join(ROSTER)),
    }
}

/// What was found, as far as that can be told without activating it.
pub(super) fn plan(hub: &HubInner, plan: Plan) -> ListResult {
    let status = |candidate: &Candidate| {
        let (state, reason) = match &candidate.refused {
            Some((state, reason)) => (*state, Some(reason.clone())),
            None => (PluginState::Loaded, None),
        };
        PluginStatus {
            name: candidate.name.clone(),
            state,
            reason,
            version: candidate.version(),
        }
    };
    let plugins = plan.candidates.values().map(status).collect();
    let mut problems = plan.problems;
    for candidate in plan.candidates.values() {
        problems.extend(candidate.problems.iter().cloned());
    }
    ListResult {
        plugins,
        problems,
        roster: hub.manager.config_dir().map(|dir| dir.join(ROSTER)),
    }
}

pub(super) fn order(view: &View) -> OrderResult {
    let ordered = view.order.iter().filter_map(|name| {
        let candidate = view.candidates.get(name)?;
        let state = view.statuses.get(name)?.state;
        Some(Ordered {
            name: name.clone(),
            state,
            needs: needs(candidate),
        })
    });
    OrderResult {
        plugins: ordered.collect(),
    }
}

pub(super) fn reloaded(reloaded: Reloaded, view: &View) -> ReloadResult {
    let Reloaded {
        activated,
        deactivated,
        kept,
        refused,
    } = reloaded;
    ReloadResult {
        activated,
        deactivated,
        kept,
        refused,
        problems: view.problems.clone(),
    }
}

pub(super) fn info(
    hub: &HubInner,
    view: &View,
    candidate: &Candidate,
    user: &UserId,
) -> InfoResult {
    let name = &candidate.name;
    let unknown = || PluginStatus {
        name: name.clone(),
        state: PluginState::Discovered,
        reason: None,
        version: candidate.version(),
    };
    let snapshot = hub.snapshot.load();
    let routes = snapshot.routes.values();
    let mut methods: Vec<String> = routes
        .filter(|route| route.plugin == *name)
        .map(|route| route.descriptor().name.to_string())
        .collect();
    methods.sort();
    let manifest = candidate.manifest.as_deref();
    let hooks = snapshot.hooks.list();
    let hooks = hooks.iter().filter(|hook| hook.plugin == *name);
    let uses = manifest.map(|manifest| manifest.uses.iter().map(|used| used.capability.clone()));
    InfoResult {
        status: view.statuses.get(name).cloned().unwrap_or_else(unknown),
        display_name: manifest
            .map(|m| m.name.clone())
            .filter(|display| *display != name.as_str()),
        description: manifest.map(|m| m.description.clone()).unwrap_or_default(),
        module: candidate.module.clone(),
        class: candidate.class.clone(),
        directory: candidate.directory.clone(),
        config_file: candidate.config_file.clone(),
        needs: needs(candidate),
        requires: manifest.map(|m| m.requires.clone()).unwrap_or_default(),
        uses: uses.map(Iterator::collect).unwrap_or_default(),
        granted: granted(candidate),
        methods,
        hooks: hooks.map(|hook| hook.hook.to_string()).collect(),
        rules: candidate.rules.clone(),
        settings: settings(hub, candidate, user),
        code: manifest.and_then(|manifest| manifest.code.clone()),
        warnings: view.warnings.get(name).cloned().unwrap_or_default(),
        problems: candidate.problems.clone(),
    }
}

/// What can be set, and what holds for a user.
pub(super) fn settings(
    hub: &HubInner,
    candidate: &Candidate,
    user: &UserId,
) -> BTreeMap<String, SettingInfo> {
    let settings = hub.manager.settings_of(candidate);
    let (common, mut mine) = (settings.values(), settings.of(user));
    let told = settings.declared().iter().map(|(name, setting)| {
        let value = mine.remove(name).unwrap_or_default();
        let info = SettingInfo {
            own: common.get(name) != Some(&value),
            setting: setting.clone(),
            value,
        };
        (name.clone(), info)
    });
    told.collect()
}

/// What hooks did. Edits and errors contain what a user said, so a user sees those about him, and
/// secrets in them are redacted.
pub(super) fn trace(
    hooks: &Hooks,
    principal: &Principal,
    redactor: &Redactor,
    p: &TraceParams,
) -> Result<TraceResult, CallError> {
    let is_admin = principal.scopes.allow(&admin_scope());
    let visible =
        |run: &RunRecord| is_admin || run.user.as_ref().is_none_or(|user| *user == principal.user);
    let wanted = |plugin: &PluginName| p.plugin.as_ref().is_none_or(|wanted| wanted == plugin);
    let infos = hooks.list();
    let infos = infos.iter().filter(|info| wanted(&info.plugin));
    // All records are read, so that those of other plugins do not displace those of the requested one.
    let records = hooks.recent(usize::MAX);
    let mut records: Vec<_> = records
        .iter()
        .filter(|run| wanted(&run.plugin) && visible(run))
        .collect();
    records.drain(..records.len().saturating_sub(p.limit));
    let unwritable = |error| {
        CallError::new(ErrorCode::Internal, "failed to serialise the hook trace").log(error)
    };
    Ok(TraceResult {
        hooks: infos
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()
            .map_err(unwritable)?,
        runs: records
            .into_iter()
            .map(|run| {
                let mut run = serde_json::to_value(run)?;
                redactor.value(&mut run);
                Ok(run)
            })
            .collect::<Result<_, _>>()
            .map_err(unwritable)?,
    })
}

fn needs(candidate: &Candidate) -> Vec<String> {
    let needs = candidate.dependencies.iter();
    needs.map(ToString::to_string).collect()
}

/// What the roster grants; `None` is everything.
fn granted(candidate: &Candidate) -> Option<Vec<Capability>> {
    match (&candidate.granted, &candidate.capabilities) {
        (Some(these), _) => Some(these.iter().cloned().collect()),
        (None, Capabilities::All) => None,
        (None, Capabilities::Only(_)) => Some(Vec::new()),
    }
}
