//! A plugin that is a directory with a manifest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Contribution, Manifest, Plugin, PluginContext, Settings};
use dodona_proto::PluginName;

use super::files;

/// The manifest's file in the plugin's directory.
pub(crate) const MANIFEST: &str = "manifest.toml";

/// A directory, read and not yet active.
#[derive(Debug, Clone)]
pub struct Directory {
    pub path: PathBuf,
    /// What it says about itself.
    pub manifest: Arc<Manifest>,
    /// The files with its rules, in order.
    pub rules: Vec<PathBuf>,
}

impl Directory {
    /// Reads a plugin directory, or returns all its problems.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let file = path.join(MANIFEST);
        let shown = file.display().to_string();
        let whole = |why: String| vec![Problem::of_file(shown.clone(), why)];
        let text = match files::read(&file) {
            Ok(Some(text)) => text,
            Ok(None) => return Err(whole("there is no such file".to_owned())),
            Err(why) => return Err(whole(why)),
        };
        let manifest = Manifest::parse(&shown, &text)?;
        let rules = files::matching(path, &manifest.rules).map_err(whole)?;
        Ok(Self {
            path: path.to_owned(),
            manifest: Arc::new(manifest),
            rules,
        })
    }
}

/// The directories of plugins below a folder, by name. What is no plugin's directory is passed
/// over.
pub(crate) fn find(folder: &Path) -> (Vec<(PluginName, PathBuf)>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let Ok(entries) = fs::read_dir(folder) else {
        return (found, problems);
    };
    let mut dirs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(MANIFEST).exists())
        .collect();
    dirs.sort();
    for path in dirs {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match PluginName::new(&name) {
            Ok(name) => found.push((name, path)),
            Err(error) => problems.push(
                Problem::of_file(path.display().to_string(), error.to_string())
                    .hint("rename the directory; it is not loaded"),
            ),
        }
    }
    (found, problems)
}

/// What the hub activates for a directory.
pub(crate) struct DirectoryPlugin {
    manifest: Arc<Manifest>,
    version: String,
}

impl DirectoryPlugin {
    pub(crate) fn new(manifest: Arc<Manifest>) -> Self {
        let version = manifest.version.to_string();
        Self { manifest, version }
    }
}

impl Plugin for DirectoryPlugin {
    fn name(&self) -> &str {
        self.manifest.id.as_str()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn description(&self) -> &str {
        &self.manifest.description
    }

    fn settings(&self) -> Settings {
        self.manifest.settings.clone()
    }

    /// Its rules are found by whoever evaluates rules; by itself it brings nothing.
    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new()) })
    }
}
