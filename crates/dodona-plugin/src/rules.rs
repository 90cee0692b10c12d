//! What the plugin that evaluates rules gets from the host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use dodona_proto::{CallError, PluginName, ProjectId, UserId};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{StateOwner, StateSnapshot};

/// The namespace of the state that a project's own rules keep. No plugin may have this name.
pub const PROJECT_RULES: &str = "project-rules";

/// The rules of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// The plugin that provides the rules.
    pub plugin: PluginName,
    /// The project that brings the plugin, if one does: they count there and nowhere else.
    pub project: Option<ProjectId>,
    /// Their files, in order.
    pub files: Vec<PathBuf>,
    /// Which contents of the files are trusted.
    pub trust: RuleTrust,
    /// The directory that paths in `trust` are relative to.
    pub base: PathBuf,
}

/// How far the rules in a project's `.dodona/rules` are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RuleTrust {
    /// No rule of the project is evaluated.
    #[default]
    Untrusted,
    /// A rule is evaluated while its file and its script have the pinned contents: content hashes
    /// by path below `.dodona/`.
    Pinned(Arc<BTreeMap<String, String>>),
    /// Every valid rule is evaluated, also after its file has changed.
    Followed,
}

impl RuleTrust {
    /// Whether a file with this content hash is trusted. `path` is relative to `.dodona/`.
    pub fn covers(&self, path: &str, hash: &str) -> bool {
        match self {
            Self::Untrusted => false,
            Self::Pinned(files) => files.get(path).is_some_and(|pinned| pinned == hash),
            Self::Followed => true,
        }
    }
}

/// Files of a project that a user has just written through Dodona: the new content hash by path
/// below `.dodona/`, `None` for a deleted file.
pub type WrittenFiles = BTreeMap<String, Option<String>>;

/// A notification of a rule that is not delivered to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedNotification {
    /// The user whose event it was.
    pub user: UserId,
    /// The project of the event.
    pub project: Option<ProjectId>,
    /// The rule, as `plugin/id`.
    pub rule: String,
    /// The text that the model would have read.
    pub message: String,
    /// The conversation; nothing for a call outside of a query.
    pub context_id: Option<String>,
    /// Why it was dropped.
    pub reason: String,
}

/// The rule engine, as the host sees it.
pub trait RuleRefresh: Send + Sync {
    /// Reads the rule sources again and returns once the new rules are in force.
    fn refresh(&self) -> BoxFuture<'_, ()>;

    /// Corrects the rule log: the rule has fired, and its notification was dropped afterwards.
    fn notification_dropped(&self, dropped: DroppedNotification);
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

    /// How far the rules of the project in this directory are trusted.
    fn rule_trust(&self, root: &Path) -> RuleTrust;

    /// Pins files that `user` has written through Dodona, because writing them is the act of
    /// trusting them. Other files keep the trust they have.
    fn trust_written<'a>(
        &'a self,
        root: &'a Path,
        user: &'a UserId,
        files: WrittenFiles,
    ) -> BoxFuture<'a, Result<(), CallError>>;

    /// Registers the rule engine. The host refreshes it before it reports that a plugin is active
    /// or that a project is trusted. A later registration replaces an earlier one.
    fn register(&self, engine: Weak<dyn RuleRefresh>);

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
