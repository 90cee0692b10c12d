//! What the rules look at: the files of the repository and what cargo knows about them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use crate::metadata::{Metadata, Reach};
use crate::process;

/// The repository as one value.
#[derive(Default)]
pub(super) struct Tree {
    /// Every file's text by its path from the root, with `/` between the parts. A file that is not
    /// text is here with an empty one: links may lead to it, no rule reads it.
    pub(super) files: BTreeMap<String, String>,
    pub(super) metadata: Metadata,
}

impl Tree {
    /// Reads the working copy: what is tracked, and what would be after `git add`.
    pub(super) fn load() -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in paths()? {
            match fs::read(process::workspace_root().join(&path)) {
                Ok(bytes) => {
                    files.insert(path, String::from_utf8(bytes).unwrap_or_default());
                }
                // Deleted, but the deletion is not yet staged.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
            }
        }
        Ok(Self {
            files,
            metadata: Metadata::load(Reach::Graph)?,
        })
    }

    /// The files whose names end like this.
    pub(super) fn ending(&self, suffix: &str) -> impl Iterator<Item = (&str, &str)> {
        let matching = self
            .files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix));
        matching.map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn paths() -> Result<Vec<String>> {
    if !process::workspace_root().join(".git").exists() {
        let mut found = Vec::new();
        walk(&process::workspace_root(), "", &mut found)?;
        return Ok(found);
    }
    // A checkout often belongs to another user than the one who runs CI in a container, and git
    // refuses to read such a repository unless told otherwise.
    let mut command = process::command("git");
    command.args(["-c", "safe.directory=*", "ls-files", "-z"]);
    let listed = process::output(command.args(["--cached", "--others", "--exclude-standard"]))?;
    Ok(listed.split_terminator('\0').map(str::to_owned).collect())
}

/// An unpacked archive has no git to ask; there we look at everything but what builds leave behind.
fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if !entry.file_type()?.is_dir() {
            found.push(path);
        } else if !matches!(name.as_str(), "target" | "node_modules") {
            walk(&entry.path(), &format!("{path}/"), found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod fixtures {
    use super::Tree;
    use crate::metadata::{Dependency, DependencyKind, Member, Target, TargetKind};

    impl Tree {
        /// A repository that exists only in a test.
        pub(in crate::tidy) fn of(files: &[(&str, &str)]) -> Self {
            let files = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
            Self {
                files: files.collect(),
                ..Self::default()
            }
        }

        /// The same with crates, each a name and what it uses.
        pub(in crate::tidy) fn with_members(
            mut self,
            members: &[(&str, &[(&str, DependencyKind)])],
        ) -> Self {
            self.metadata.members = members
                .iter()
                .map(|(name, uses)| member(name, uses))
                .collect();
            self
        }
    }

    fn member(name: &str, uses: &[(&str, DependencyKind)]) -> Member {
        let dependencies = uses.iter().map(|(name, kind)| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
        });
        Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            targets: vec![Target {
                name: name.to_owned(),
                kind: TargetKind::Library,
                root: format!("crates/{name}/src/lib.rs"),
            }],
            dependencies: dependencies.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_has_this_file_and_nothing_that_was_built() {
        let paths = paths().unwrap();
        assert!(
            paths.iter().any(|path| path == "xtask/src/tidy/tree.rs"),
            "{paths:?}"
        );
        assert!(
            !paths.iter().any(|path| path.starts_with("target/")),
            "{paths:?}"
        );
    }

    #[test]
    fn an_unpacked_archive_is_walked_without_git() {
        let mut found = Vec::new();
        walk(
            &process::workspace_root().join("xtask"),
            "xtask/",
            &mut found,
        )
        .unwrap();
        assert!(
            found.iter().any(|path| path == "xtask/src/tidy/tree.rs"),
            "{found:?}"
        );
    }
}
