//! Locating rule files.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use dodona_plugin::CallCtx;

use super::RuleEditor;
use crate::identity::Scope;
use crate::load::BUNDLED;

/// Prefix of the paths of bundled rules.
const BUNDLED_PREFIX: &str = "bundled:";

/// A file that contains a rule or may contain one.
pub(super) struct RuleFile {
    pub(super) scope: Scope,
    pub(super) place: Place,
}

/// Location of the text.
pub(super) enum Place {
    /// Bundled in the program, in `/rules`.
    Program(&'static str),
    Disk(PathBuf),
}

impl RuleEditor {
    /// The rule file with this path. Returns `None` for all other files on disk.
    pub(super) fn file(&self, ctx: &CallCtx, path: &str) -> Option<RuleFile> {
        if let Some(name) = path.strip_prefix(BUNDLED_PREFIX) {
            let found = BUNDLED.iter().find(|file| file.path == name)?;
            return Some(RuleFile {
                scope: Scope::Bundled,
                place: Place::Program(found.path),
            });
        }
        let path = PathBuf::from(path);
        let scope = self.scope_of(ctx, &path)?;
        Some(RuleFile {
            scope,
            place: Place::Disk(path),
        })
    }

    fn scope_of(&self, ctx: &CallCtx, path: &Path) -> Option<Scope> {
        let directory = path.parent()?;
        let is_file = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(is_file_name);
        if is_file && self.user.as_deref() == Some(directory) {
            return Some(Scope::User);
        }
        if is_file && project_directory(ctx).as_deref() == Some(directory) {
            // A project may contain links made by others; they must not lead outside the project.
            let root = ctx.project.as_ref()?.root.canonicalize().ok()?;
            return path
                .canonicalize()
                .ok()?
                .starts_with(root)
                .then_some(Scope::Project);
        }
        let sources = self.engine.host.sources().into_iter();
        let here = ctx.project.as_ref().map(|project| &project.id);
        let sources =
            sources.filter(|source| source.project.is_none() || source.project.as_ref() == here);
        let mut owners = sources.filter(|source| source.files.iter().any(|file| file == path));
        owners.next().map(|source| Scope::Plugin(source.plugin))
    }
}

/// The rule directory of the call's project. It may not exist.
pub(super) fn project_directory(ctx: &CallCtx) -> Option<PathBuf> {
    let project = ctx.project.as_ref()?;
    Some(project.root.join(".dodona/rules"))
}

/// Whether this is a plain name of a `.toml` file, without directories.
pub(super) fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
    let visible = !name.starts_with('.') && !name.chars().any(char::is_control);
    plain && visible && name.len() <= 200 && name.len() > ".toml".len() && name.ends_with(".toml")
}

/// Creates a directory below `root`. Fails if a link leads outside `root`.
pub(super) fn make_below(root: &Path, below: &Path) -> io::Result<PathBuf> {
    let root = root.canonicalize()?;
    let mut directory = root.clone();
    for part in below.components() {
        directory = directory.join(part);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => directory = directory.canonicalize()?,
        }
        if !directory.starts_with(&root) {
            let why = format!(
                "`{}` is a link that leads outside the project",
                below.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_of_toml_files_are_names_of_rules() {
        for good in ["a.toml", "No Main Writes.toml", "é.toml"] {
            assert!(is_file_name(good), "{good}");
        }
        let long = format!("{}.toml", "a".repeat(300));
        for bad in [
            "",
            ".toml",
            "a.txt",
            "../a.toml",
            "a/b.toml",
            "/a.toml",
            "..",
            ".a.toml",
            "a\n.toml",
            "a\0.toml",
            &long,
        ] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let (project, outside) = (folder.path().join("project"), folder.path().join("outside"));
        fs::create_dir(&project).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, project.join(".dodona")).unwrap();
        let refused = make_below(&project, Path::new(".dodona/rules")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(!outside.join("rules").exists());
    }
}
