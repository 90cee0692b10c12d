//! Plugins from outside the binary: who makes them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_proto::PluginName;

use crate::Plugin;
use crate::manifest::{Code, Manifest};
use crate::reading::Problem;

/// What a plugin from outside the binary is made of.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Its name.
    pub name: PluginName,
    /// What it says about itself; no more than its name where it has no manifest.
    pub manifest: Arc<Manifest>,
    /// Where its code is.
    pub source: OutsideSource,
}

/// Where the code of a plugin from outside is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideSource {
    /// A directory whose manifest says what runs.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What runs.
        code: Code,
    },
    /// `module = "mcp:…"` in the roster: what stands after the colon.
    Mcp(String),
}

/// What a loader made of it.
pub struct Loaded {
    /// The plugin, not yet active.
    pub plugin: Arc<dyn Plugin>,
    /// Changes exactly when the plugin has to be activated anew. The hub adds the manifest, the
    /// roster's entry and the settings by itself.
    pub fingerprint: String,
}

/// Makes plugins of what is outside the binary.
///
/// The hub asks at its start and at every reload, on a thread that may block. So a loader reads
/// and checks, and starts nothing: that is [`Plugin::activate`]'s. What is the same as before is
/// dropped unused.
pub trait Loader: Send + Sync {
    /// The plugin, or everything that is wrong with it; `None` if another loader is meant.
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>>;
}

/// The loaders of a program. The first one that takes a plugin makes it.
#[derive(Clone, Default)]
pub struct Loaders(Vec<Arc<dyn Loader>>);

impl Loaders {
    /// None: there are no plugins from outside but those of rules and settings alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a loader.
    #[must_use]
    pub fn with(mut self, loader: Arc<dyn Loader>) -> Self {
        self.0.push(loader);
        self
    }

    /// Asks each in turn.
    pub fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        self.0.iter().find_map(|loader| loader.load(outside))
    }
}

impl fmt::Debug for Loaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaders", self.0.len())
    }
}
