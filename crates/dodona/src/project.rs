//! Which directory a question is about.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What marks the root of a project.
const MARKS: [&str; 2] = [".dodona", ".git"];

/// The root that the user named, or the nearest one above the current directory.
pub(crate) fn root(named: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    match named {
        Some(dir) => match dir.canonicalize() {
            Ok(found) if found.is_dir() => Ok(Some(found)),
            Ok(_) => Err(Failure::usage(format!(
                "`{}` is not a directory",
                dir.display()
            ))),
            Err(error) => Err(Failure::usage(format!(
                "could not open the project `{}`: {error}",
                dir.display()
            ))),
        },
        // A current directory that is gone has no project; that need not stop anything.
        None => Ok(std::env::current_dir().ok().and_then(|dir| above(&dir))),
    }
}

fn above(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    let marked = |dir: &&Path| MARKS.iter().any(|mark| dir.join(mark).exists());
    dir.ancestors().find(marked).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_mark_upwards_is_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().canonicalize().unwrap();
        let inner = outer.join("a/b");
        fs::create_dir_all(inner.join("c")).unwrap();
        fs::create_dir(outer.join(".git")).unwrap();
        assert_eq!(above(&inner), Some(outer));
        fs::create_dir(inner.join(".dodona")).unwrap();
        assert_eq!(above(&inner.join("c")), Some(inner));
    }
}
