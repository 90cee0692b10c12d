//! What a callback answers.

use dodona_proto::{Effect, PluginEffect};
use serde::Deserialize;

/// An edit of what the callback was shown, and effects. Nothing of either is usual.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "E: Deserialize<'de>"))]
pub struct Reply<E> {
    /// What should change.
    #[serde(default = "Option::default")]
    pub edit: Option<E>,
    /// What should happen beside that.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// The same in the names of others, for a plugin that speaks for them, as `rules` does. A
    /// callback from outside this program speaks for itself only.
    #[serde(skip)]
    pub on_behalf: Vec<PluginEffect>,
}

impl<E> Reply<E> {
    /// Nothing changes, nothing happens.
    pub const fn none() -> Self {
        Self {
            edit: None,
            effects: Vec::new(),
            on_behalf: Vec::new(),
        }
    }

    /// Changes something.
    pub const fn edit(edit: E) -> Self {
        Self {
            edit: Some(edit),
            effects: Vec::new(),
            on_behalf: Vec::new(),
        }
    }

    /// Has something happen.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Whether there is anything to do.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.edit.is_none() && self.effects.is_empty() && self.on_behalf.is_empty()
    }
}

impl<E> Default for Reply<E> {
    fn default() -> Self {
        Self::none()
    }
}

/// Why a callback has no answer. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookFailure(pub String);

impl HookFailure {
    /// With a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
