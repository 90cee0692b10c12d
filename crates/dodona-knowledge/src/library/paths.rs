//! Paths that callers give, kept inside the project.

use std::path::{Component, Path, PathBuf};

use dodona_plugin::{CallError, ErrorCode};

use super::access::FileAccess;

/// The longest path that is looked at.
const MAX_PATH: usize = 1024;

/// The file that a path below `root` names. A path that leads outside or to a closed file is
/// refused, links included; `root` is canonical.
pub(crate) fn resolve(root: &Path, path: &str, access: &FileAccess) -> Result<PathBuf, CallError> {
    let refused = |why: &str| {
        let shown: String = path.chars().take(80).collect();
        CallError::new(
            ErrorCode::InvalidParams,
            format!(
                "`{}` is not a path in the project: {why}",
                shown.escape_debug()
            ),
        )
    };
    if path.is_empty() || path.len() > MAX_PATH || path.contains('\0') {
        return Err(refused("it is empty, too long or has a NUL"));
    }
    let inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(refused("write it from the project's root, without `..`"));
    }
    // Before the file is looked for, so that the answer does not depend on whether it exists.
    let check = |path_in: &Path| access.check(root, path_in).map_err(|why| why.error(path));
    check(Path::new(path))?;
    let missing = || {
        let error = CallError::new(ErrorCode::NotFound, format!("there is no file `{path}`"));
        let note = format!("{path}.md");
        match root.join(&note).is_file() {
            true => error.hint(format!("there is `{note}`")),
            false => error,
        }
    };
    let found = root.join(path).canonicalize().map_err(|_| missing())?;
    let Ok(place) = found.strip_prefix(root) else {
        return Err(refused("it leads out of the project"));
    };
    // Again without links: one may point to a closed file.
    check(place)?;
    match found.is_file() {
        true => Ok(found),
        // A pipe would be waited for until another program writes to it.
        false => Err(refused("it is no file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("in.md"), "x").unwrap();
        std::fs::write(folder.path().join("out.md"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("out.md"), root.join("link.md")).unwrap();
        let root = root.canonicalize().unwrap();
        let resolve = |root: &Path, path: &str| resolve(root, path, &FileAccess::default());
        assert!(resolve(&root, "in.md").is_ok());
        assert!(resolve(&root, "./in.md").is_ok());
        let absolute = root.join("in.md");
        for path in [
            "",
            "../out.md",
            "a/../../out.md",
            "link.md",
            "in.md\0",
            absolute.to_str().unwrap(),
            &"x".repeat(2000),
            "gone.md",
        ] {
            assert!(resolve(&root, path).is_err(), "{path:?} was taken");
        }
        std::fs::create_dir(root.join("folder")).unwrap();
        #[cfg(unix)]
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        std::fs::write(root.join(".env"), "KEY=1").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join(".env"), root.join("settings.md")).unwrap();
        for path in [".env", "settings.md", ".git/gone"] {
            let error = resolve(&root, path).unwrap_err();
            assert!(
                cfg!(not(unix)) || error.code == ErrorCode::Forbidden,
                "{path}: {error}"
            );
        }
        for path in ["folder", "socket"] {
            let error = resolve(&root, path).unwrap_err().to_string();
            assert!(
                cfg!(not(unix)) || error.contains("it is no file"),
                "{error}"
            );
        }
        let hint = |path| {
            resolve(&root, path)
                .unwrap_err()
                .hint_text()
                .map(str::to_owned)
        };
        assert_eq!(hint("in").as_deref(), Some("there is `in.md`"));
        assert_eq!(hint("gone"), None);
    }
}
