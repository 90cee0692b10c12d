//! The chain of names a call came through.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call_id::MAX_NESTING;
use crate::name::{NameError, PluginName, check_segment, text_newtype};

/// Why a text is not a path, or a path cannot grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// One of the names is not a name.
    #[error("not a path")]
    Segment(#[from] NameError),
    /// More names than calls may nest.
    #[error("a path has at most {} names", MAX_NESTING + 1)]
    TooDeep,
}

/// The names of the plugins (and their named inner parts) a call came through,
/// such as `agent.librarian.vault`.
///
/// The hub sets it; a plugin never does. Held as the dotted text that goes over the wire, so
/// that sending an item formats nothing and cloning copies a pointer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct PluginPath(Arc<str>);

impl PluginPath {
    /// The path of a call that came from outside.
    pub fn root(plugin: &PluginName) -> Self {
        Self(plugin.as_str().into())
    }

    /// The path one step further down.
    #[doc(alias = "extend")]
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        check_segment(name)?;
        if self.depth() > MAX_NESTING {
            return Err(PathError::TooDeep);
        }
        let mut text = String::with_capacity(self.0.len() + 1 + name.len());
        text.push_str(&self.0);
        text.push('.');
        text.push_str(name);
        Ok(Self(text.into()))
    }

    /// The names, outermost first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// How many names the path has; at least one.
    pub fn depth(&self) -> usize {
        self.segments().count()
    }

    /// Whether this path is `prefix` or lies below it. Whole names only: `agent.lib` is not a
    /// prefix of `agent.librarian`.
    pub fn starts_with(&self, prefix: &PluginPath) -> bool {
        match self.0.strip_prefix(&*prefix.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('.'),
            None => false,
        }
    }

    /// The dotted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut depth = 0;
        for segment in text.split('.') {
            check_segment(segment)?;
            depth += 1;
            if depth > MAX_NESTING + 1 {
                return Err(PathError::TooDeep);
            }
        }
        Ok(Self(text.into()))
    }
}
text_newtype!(PluginPath);
