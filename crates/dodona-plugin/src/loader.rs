//! Loaders of external plugins.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_proto::PluginName;

use crate::Plugin;
use crate::manifest::{Code, Manifest};
use crate::reading::Problem;

/// The source of an external plugin.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Name of the plugin.
    pub name: PluginName,
    /// The manifest; only the name if it has none.
    pub manifest: Arc<Manifest>,
    /// The location of its code.
    pub source: OutsideSource,
}

/// The location of the code of an external plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideSource {
    /// A directory with a manifest.
    Directory {
        /// Path of the plugin's directory.
        path: PathBuf,
        /// The script or process of the manifest.
        code: Code,
    },
    /// `module = "mcp:…"` in the roster: the text after the colon.
    Mcp(String),
}

/// A plugin created by a loader.
pub struct Loaded {
    /// The plugin, not yet active.
    pub plugin: Arc<dyn Plugin>,
    /// Changes exactly when the plugin must be activated again. The hub adds manifest, roster entry and settings
    /// itself.
    pub fingerprint: String,
}

/// Creates external plugins.
///
/// The hub calls it at the start and at every reload, on a blocking thread. A loader reads and checks files and
/// starts nothing; starting is the task of [`Plugin::activate`]. An unchanged plugin is dropped unused.
pub trait Loader: Send + Sync {
    /// Creates the plugin or returns all problems; `None` if the source is for another loader.
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>>;
}

/// The loaders of a program. The first one that accepts a source creates the plugin.
#[derive(Clone, Default)]
pub struct Loaders(Vec<Arc<dyn Loader>>);

impl Loaders {
    /// No loaders. Only external plugins without code, with rules and settings, are loaded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a loader at the end of the list.
    #[must_use]
    pub fn with(mut self, loader: Arc<dyn Loader>) -> Self {
        self.0.push(loader);
        self
    }

    /// Tries each loader in turn.
    pub fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        self.0.iter().find_map(|loader| loader.load(outside))
    }
}

impl fmt::Debug for Loaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaders", self.0.len())
    }
}
