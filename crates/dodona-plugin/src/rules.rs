//! What the plugin that evaluates rules gets from the host.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_proto::{CallError, PluginName, ProjectId, UserId};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{StateOwner, StateSnapshot};

/// The rules of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// Whose.
    pub plugin: PluginName,
    /// The project that brings the plugin, if one does: they count there and nowhere else.
    pub project: Option<ProjectId>,
    /// Their files, in order.
    pub files: Vec<PathBuf>,
}

/// What rules need and only the host knows: the plugins they belong to, and what users decided.
/// What answers at once answers from memory.
pub trait RuleHost: Send + Sync {
    /// The rules of the plugins that are active now.
    fn sources(&self) -> Vec<RuleSource>;

    /// The settings of an active plugin as they hold for a user; none of one that is not.
    fn settings(&self, plugin: &PluginName, user: &UserId) -> Option<Map<String, Value>>;

    /// Everything that a user has set, by plugin.
    fn choices(&self, user: &UserId) -> Map<String, Value>;

    /// Everything that a plugin remembers for a user in a project, of whichever plugin.
    fn state<'a>(
        &'a self,
        owner: &'a StateOwner,
    ) -> BoxFuture<'a, Result<StateSnapshot, CallError>>;

    /// Sets a value of whichever plugin, and answers with the owner's new version.
    fn set_state<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<u64, CallError>>;

    /// Where a project is.
    fn project_root(&self, project: &ProjectId) -> Option<PathBuf>;

    /// The rules that a user switched off, each as `plugin/id`.
    fn disabled(&self, user: &UserId) -> Arc<BTreeSet<String>>;

    /// Switches a rule off or on again. It holds once this has answered, and for good.
    fn set_disabled<'a>(
        &'a self,
        user: &'a UserId,
        rule: &'a str,
        disabled: bool,
    ) -> BoxFuture<'a, Result<(), CallError>>;
}
