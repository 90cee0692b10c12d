//! The reply of a callback.

use dodona_proto::{Effect, PluginEffect};
use serde::Deserialize;

/// An edit of the payload, and effects. Most replies have neither.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "E: Deserialize<'de>"))]
pub struct Reply<E> {
    #[serde(default = "Option::default")]
    pub edit: Option<E>,
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// Effects on behalf of other plugins. The plugin `rules` uses this for rules of plugins. Not available to
    /// external callbacks.
    #[serde(skip)]
    pub on_behalf: Vec<PluginEffect>,
}

impl<E> Reply<E> {
    pub const fn none() -> Self {
        Self {
            edit: None,
            effects: Vec::new(),
            on_behalf: Vec::new(),
        }
    }

    /// A reply with an edit.
    pub const fn edit(edit: E) -> Self {
        Self {
            edit: Some(edit),
            effects: Vec::new(),
            on_behalf: Vec::new(),
        }
    }

    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Whether the reply is empty.
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

/// Why a callback failed. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookFailure(pub String);

impl HookFailure {
    /// Creates a failure with a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
