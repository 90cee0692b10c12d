//! The last valid version of each rule file, stored so that it survives a restart.
//!
//! A `deny` whose file is broken by an edit must still deny after the server has been restarted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use dodona_plugin::content_hash;
use serde::{Deserialize, Serialize};

use super::LARGEST;
use super::file::SourceText;
use crate::identity::Scope;

/// Upper bound for a stored version: a rule and its script, escaped as JSON.
const MAX_BYTES: u64 = 8 * LARGEST as u64;

/// A directory with one file for each rule file that was valid.
#[derive(Debug)]
pub(crate) struct VersionStore {
    directory: PathBuf,
}

/// What is stored of a rule file.
#[derive(Serialize, Deserialize)]
struct StoredVersion {
    path: PathBuf,
    /// The hash over all texts, so that a damaged version is not used.
    hash: String,
    /// The rule file and its script, each with its text.
    texts: Vec<(PathBuf, String)>,
}

impl VersionStore {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Stores the texts of a valid rule, unless they are stored already.
    pub(crate) fn save(&self, path: &Path, scope: &Scope, texts: &[SourceText]) {
        let hash = hash(texts.iter().map(|source| (&*source.path, &*source.text)));
        if self
            .read(path, scope)
            .is_some_and(|stored| stored.hash == hash)
        {
            return;
        }
        let stored = StoredVersion {
            path: path.to_owned(),
            hash,
            texts: (texts.iter())
                .map(|source| (source.path.clone(), source.text.clone()))
                .collect(),
        };
        if let Err(error) = self.write(&self.file(path, scope), &stored) {
            tracing::warn!(path = %path.display(), %error, "the last valid version of a rule could not be stored");
        }
    }

    /// The stored texts of a rule file, if there are any.
    pub(crate) fn load(&self, path: &Path, scope: &Scope) -> Option<Vec<SourceText>> {
        let stored = self.read(path, scope)?;
        let texts = stored.texts.into_iter();
        Some(
            texts
                .map(|(path, text)| SourceText::new(path, text))
                .collect(),
        )
    }

    /// Forgets a rule file that was deleted.
    pub(crate) fn remove(&self, path: &Path, scope: &Scope) {
        // A version that was never stored is not there.
        let _ = fs::remove_file(self.file(path, scope));
    }

    fn read(&self, path: &Path, scope: &Scope) -> Option<StoredVersion> {
        let mut text = String::new();
        let file = File::open(self.file(path, scope)).ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let stored: StoredVersion = serde_json::from_str(&text).ok()?;
        let texts = stored.texts.iter().map(|(path, text)| (&**path, &**text));
        (stored.path == path && stored.hash == hash(texts)).then_some(stored)
    }

    fn write(&self, file: &Path, stored: &StoredVersion) -> io::Result<()> {
        create_private_directory(&self.directory)?;
        let text = serde_json::to_string(stored).map_err(io::Error::other)?;
        let new = file.with_extension("new");
        let mut written = private().open(&new)?;
        written.write_all(text.as_bytes())?;
        // Not synced: a thousand rules would wait for a thousand syncs. A version that a power cut
        // damaged does not have its hash, and is ignored.
        drop(written);
        fs::rename(&new, file)
    }

    fn file(&self, path: &Path, scope: &Scope) -> PathBuf {
        let name = content_hash(format!("{scope}\n{}", path.display()).as_bytes());
        self.directory.join(format!("{name}.json"))
    }
}

fn hash<'t>(texts: impl Iterator<Item = (&'t Path, &'t str)>) -> String {
    let mut all = String::new();
    for (path, text) in texts {
        all.push_str(&path.display().to_string());
        all.push('\0');
        all.push_str(text);
        all.push('\0');
    }
    content_hash(all.as_bytes())
}

/// For a file that only the owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_version_comes_back_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = VersionStore::new(folder.path().join("versions"));
        let path = Path::new("/p/a.toml");
        let texts = vec![
            SourceText::new(path.to_owned(), "one".to_owned()),
            SourceText::new(PathBuf::from("/p/a.lua"), "two".to_owned()),
        ];
        store.save(path, &Scope::User, &texts);
        assert_eq!(store.load(path, &Scope::User), Some(texts));
        assert_eq!(store.load(path, &Scope::Project), None);
        let file = store.file(path, &Scope::User);
        let damaged = fs::read_to_string(&file).unwrap().replace("two", "ten");
        fs::write(&file, damaged).unwrap();
        assert_eq!(store.load(path, &Scope::User), None);
    }
}
