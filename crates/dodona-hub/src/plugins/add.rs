//! `plugins.add`: a new plugin in the roster.

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{PluginName, PluginState};
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value, value};

use super::types::{AddParams, AddResult};
use crate::hub::HubInner;
use crate::manager::Change;

/// Number of log lines in the error for a plugin that could not be added.
const LINES: usize = 6;

/// Adds a plugin, or rolls back and returns the reason.
pub(super) async fn add(hub: &HubInner, p: AddParams) -> Result<AddResult, CallError> {
    let invalid = |message: &str| CallError::new(ErrorCode::InvalidParams, message);
    if !p.module.starts_with("mcp:") && !p.module.starts_with("dir:") {
        return Err(invalid("`module` must start with `mcp:` or `dir:`"));
    }
    let settings = settings(&p);
    if settings.is_some() && !p.module.starts_with("mcp:") {
        return Err(invalid(
            "`env` and `headers` are only allowed for MCP servers",
        ));
    }
    let has_settings = settings.is_some();
    hub.manager.add(&p.plugin, p.module, settings).await?;
    let reloaded = hub.manager.reload_for(&p.plugin, &hub.snapshot).await;
    let status = hub.manager.view().statuses.get(&p.plugin).cloned();
    match status {
        // A plugin that only lacks a capability stays added, because granting it is the next step.
        Some(status) if status.state == PluginState::Active || lacks_grant(hub, &p.plugin) => {
            let methods = methods(hub, &p.plugin);
            Ok(AddResult { status, methods })
        }
        status => {
            if has_settings {
                hub.manager.take_back(&p.plugin).await?
            } else {
                hub.manager.change(&p.plugin, Change::Remove).await?
            }
            hub.manager.reload_once(&hub.snapshot).await;
            let why = reloaded.refused.or(status.and_then(|status| status.reason));
            let why = why.unwrap_or_else(|| "it was not activated".to_owned());
            let message = format!("`{}` was not added: {why}", p.plugin);
            let error = CallError::new(ErrorCode::InvalidRequest, message);
            Err(match said(hub, &p.plugin) {
                Some(said) => error.hint(format!("its last output was: {said}")),
                None => error,
            })
        }
    }
}

/// The last lines of its log. They are part of the error, because the log is gone with the plugin.
fn said(hub: &HubInner, plugin: &PluginName) -> Option<String> {
    let lines = hub.manager.log(plugin).last(LINES);
    let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    (!lines.is_empty()).then(|| lines.join(" · "))
}

fn lacks_grant(hub: &HubInner, plugin: &PluginName) -> bool {
    let view = hub.manager.view();
    let candidate = view.candidates.get(plugin);
    candidate.is_some_and(|candidate| candidate.lacks_grant())
}

fn methods(hub: &HubInner, plugin: &PluginName) -> Vec<String> {
    let snapshot = hub.snapshot.load();
    let names = snapshot.routes.keys().map(ToString::to_string);
    let mut mine: Vec<String> = names
        .filter(|name| name.split('.').next() == Some(plugin.as_str()))
        .collect();
    mine.sort();
    mine
}

/// The settings file of the plugin, with the sources of secrets.
fn settings(p: &AddParams) -> Option<String> {
    if p.env.is_empty() && p.headers.is_empty() {
        return None;
    }
    let mut document = DocumentMut::new();
    let mut server = Table::new();
    server.set_implicit(true);
    let from = |variable: &str| {
        let mut table = InlineTable::new();
        table.insert("env", Value::from(variable));
        value(table)
    };
    let env = p.env.iter().map(|name| (name.as_str(), name.as_str()));
    let headers = p
        .headers
        .iter()
        .map(|(name, from)| (name.as_str(), from.as_str()));
    let parts: [(&str, Vec<(&str, &str)>); 2] =
        [("env", env.collect()), ("headers", headers.collect())];
    for (key, entries) in parts {
        if entries.is_empty() {
            continue;
        }
        let mut table = Table::new();
        for (name, variable) in entries {
            table.insert(name, from(variable));
        }
        server.insert(key, Item::Table(table));
    }
    document.insert("server", Item::Table(server));
    Some(document.to_string())
}
