//! Detecting changes of plugin files.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::{PluginManager, ROSTER, View};

/// Maximum number and depth of the watched files of a plugin.
const MOST_FILES: usize = 2_000;
const DEEPEST: usize = 8;

/// A fingerprint of all files: names, sizes, times and inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl PluginManager {
    /// The current fingerprint of roster, plugin directories and settings. Reads no file contents.
    pub(crate) async fn stamp(&self) -> Option<Stamp> {
        let config = self.config_dir().cloned();
        let mut places = places(config.as_deref(), &self.view());
        places.extend(self.sources.trustable());
        let looked = tokio::task::spawn_blocking(move || stamp(&places)).await;
        looked.ok()
    }
}

/// All paths that are watched.
fn places(config: Option<&Path>, view: &View) -> BTreeSet<PathBuf> {
    let mut places = BTreeSet::new();
    if let Some(config) = config {
        places.insert(config.join(ROSTER));
        places.insert(config.join("plugins"));
    }
    for candidate in view.candidates.values() {
        places.extend(candidate.directory.clone());
        places.extend(candidate.config_file.clone());
    }
    places
}

fn stamp(places: &BTreeSet<PathBuf>) -> Stamp {
    let mut hasher = DefaultHasher::new();
    for place in places {
        let mut left = MOST_FILES;
        look(place, DEEPEST, &mut left, &mut hasher);
    }
    Stamp(hasher.finish())
}

fn look(path: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    *left = left.saturating_sub(1);
    path.hash(hasher);
    if metadata.is_file() {
        metadata.len().hash(hasher);
        metadata.modified().ok().hash(hasher);
        // A file that was moved into place may have the same size and almost the same time.
        #[cfg(unix)]
        std::os::unix::fs::MetadataExt::ino(&metadata).hash(hasher);
        return;
    }
    if depth == 0 || *left == 0 {
        return;
    }
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut below: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(*left)
        .collect();
    below.sort();
    for path in below {
        look(&path, depth - 1, left, hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_any_file_below() {
        let folder = tempfile::tempdir().unwrap();
        let places = BTreeSet::from([folder.path().to_owned()]);
        let empty = stamp(&places);
        assert_eq!(stamp(&places), empty);
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/main.luau"), "x").unwrap();
        let one = stamp(&places);
        assert_ne!(one, empty);
        fs::write(folder.path().join("a/main.luau"), "xy").unwrap();
        assert_ne!(stamp(&places), one);
    }
}
