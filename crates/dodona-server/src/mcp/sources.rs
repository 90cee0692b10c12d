//! Plugins that have resources or prompts of their own, as mounted servers do.
//!
//! Such a plugin has the methods `resources` and `read_resource`, or `prompts` and `get_prompt`,
//! whose results are in MCP's own form. Any plugin can have them.

use std::sync::Arc;

use dodona_proto::MethodDescriptor;
use serde_json::{Value, json};

use super::desk::Desk;
use super::groups::Groups;

/// What a plugin has to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Resources,
    Prompts,
}

impl Kind {
    /// The method that lists, the title of its result, and the method that reads.
    const fn methods(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Resources => ("resources", "Resources", "read_resource"),
            Self::Prompts => ("prompts", "Prompts", "get_prompt"),
        }
    }
}

/// A plugin that has something to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) plugin: String,
    pub(super) kind: Kind,
}

/// The plugins among these methods that have something to read, in order.
pub(super) fn among(methods: &[Arc<MethodDescriptor>], groups: &Groups) -> Vec<Source> {
    let has = |name: String| methods.iter().any(|method| method.name.as_str() == name);
    let mut sources = Vec::new();
    for method in methods {
        let Some((plugin, verb)) = method.name.as_str().split_once('.') else {
            continue;
        };
        for kind in [Kind::Resources, Kind::Prompts] {
            let (list, title, read) = kind.methods();
            let is_one = verb == list && method.result["title"] == title;
            if is_one && has(format!("{plugin}.{read}")) && groups.offer_plugin(plugin) {
                let plugin = plugin.to_owned();
                sources.push(Source { plugin, kind });
            }
        }
    }
    sources
}

impl Source {
    /// What it has. A source that cannot say has nothing: the others count all the same.
    pub(super) async fn list(&self, desk: &Desk) -> Value {
        let (list, ..) = self.kind.methods();
        let method = format!("{}.{list}", self.plugin);
        desk.call(&method, json!({})).await.unwrap_or_else(|error| {
            tracing::info!(%error, "`{method}` cannot say what there is");
            Value::Null
        })
    }

    /// The method that reads one of them.
    pub(super) fn read(&self) -> String {
        let (.., read) = self.kind.methods();
        format!("{}.{read}", self.plugin)
    }
}
