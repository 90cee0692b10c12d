//! Paths of notes that are written: they stay in the vault, and work on every system.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dodona_plugin::{CallError, ErrorCode};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::library::Closed;
use crate::parse::markdown::EXTENSIONS;

/// The longest path, and the longest name in it.
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 200;

/// Names that Windows keeps for devices, whatever their ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// What Windows allows in no name, and what would end the name in a link.
const FORBIDDEN: [char; 11] = ['<', '>', ':', '"', '|', '?', '*', '#', '^', '[', ']'];

/// Why a path is not one of a note.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// It would lead elsewhere, or to something else.
    #[error("`{}` is not the path of a note: {why}", shown(path))]
    Refused {
        /// The path as the caller wrote it.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another name that many systems take for the same is there.
    #[error(
        "`{}` differs from `{existing}` only in case or in how its letters are composed",
        shown(path)
    )]
    Clash {
        /// The path as the caller wrote it.
        path: String,
        /// What is there.
        existing: String,
    },
    /// It is closed to every method.
    #[error("`{}` cannot be used: {why}", shown(path))]
    Closed {
        /// The path as the caller wrote it.
        path: String,
        /// What closes it.
        why: Closed,
    },
    /// The disk did not tell.
    #[error("`{}` cannot be looked at", shown(path))]
    Unreadable {
        /// The path as the caller wrote it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<PathError> for CallError {
    fn from(error: PathError) -> Self {
        let message = error.to_string();
        match error {
            PathError::Refused { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("write it from the project's root with `/`, as in `notes/topic.md`"),
            PathError::Closed { path, why } => why.error(&path),
            PathError::Clash { existing, .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint(format!("use `{existing}`, or another name")),
            PathError::Unreadable { source, .. } => {
                Self::new(ErrorCode::Storage, message).log(source)
            }
        }
    }
}

/// The beginning of a path, harmless.
fn shown(path: &str) -> String {
    let start: String = path.chars().take(80).collect();
    start.escape_debug().to_string()
}

/// The path of a note below the project's root, with `/`. Whether there is one is not said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NotePath(String);

impl NotePath {
    /// Checks a path that somebody gave, in a project whose notes are below `vault`.
    pub(crate) fn parse(text: &str, vault: Option<&str>) -> Result<Self, PathError> {
        let path = text.strip_prefix("./").unwrap_or(text);
        let refused = |why: &str| PathError::Refused {
            path: text.to_owned(),
            why: why.to_owned(),
        };
        if path.is_empty() || path.len() > MAX_PATH {
            return Err(refused("it is empty or too long"));
        }
        if path.chars().any(is_invisible) || path.contains('\\') {
            return Err(refused(
                "it has a backslash or a character that is not shown",
            ));
        }
        if path.starts_with('/') {
            return Err(refused("it does not begin at the project's root"));
        }
        for name in path.split('/') {
            check_name(name).map_err(refused)?;
        }
        let ending = path
            .rsplit_once('.')
            .map(|(_, ending)| ending.to_lowercase());
        if !ending.is_some_and(|ending| EXTENSIONS.contains(&ending.as_str())) {
            return Err(refused("notes end in `.md`"));
        }
        match vault {
            Some(vault) if !Path::new(path).starts_with(vault) => Err(refused(&format!(
                "the notes of this project are in `{vault}`"
            ))),
            _ => Ok(Self(path.to_owned())),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The file of this path. No part of it is a link, so that it leads nowhere else.
    pub(crate) fn place(&self, root: &Path) -> Result<PathBuf, PathError> {
        let mut place = root.to_owned();
        for name in self.0.split('/') {
            place.push(name);
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_symlink() => {
                    return Err(PathError::Refused {
                        path: self.0.clone(),
                        why: format!("`{name}` is a symbolic link"),
                    });
                }
                Ok(_) => {}
                Err(error) if is_absent(&error) => {}
                Err(source) => {
                    let path = self.0.clone();
                    return Err(PathError::Unreadable { path, source });
                }
            }
        }
        Ok(place)
    }

    /// The same for a note that may be new: then every system can have its name, and no other note
    /// has it in different letters, but for `renamed`.
    pub(crate) fn locate(
        &self,
        root: &Path,
        renamed: Option<&NotePath>,
    ) -> Result<PathBuf, PathError> {
        let place = self.place(root)?;
        let mut folder = root.to_owned();
        let mut known = true;
        for name in self.0.split('/') {
            known = known && self.is_there(&folder, root, name, renamed)?;
            if !known {
                check_portable(name).map_err(|why| PathError::Refused {
                    path: self.0.clone(),
                    why: why.to_owned(),
                })?;
            }
            folder.push(name);
        }
        Ok(place)
    }

    /// Whether something has exactly this name in a folder.
    fn is_there(
        &self,
        folder: &Path,
        root: &Path,
        name: &str,
        renamed: Option<&NotePath>,
    ) -> Result<bool, PathError> {
        let unreadable = |source| PathError::Unreadable {
            path: self.0.clone(),
            source,
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(unreadable(error)),
        };
        let folded = fold(name);
        let mut alike = None;
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let found = entry.file_name();
            if found == name {
                return Ok(true);
            }
            if found.to_str().is_some_and(|found| fold(found) == folded) {
                let path = entry.path();
                let path = path.strip_prefix(root).unwrap_or(&path);
                alike = Some(path.to_string_lossy().into_owned());
            }
        }
        match alike {
            Some(existing) if renamed.is_none_or(|renamed| renamed.0 != existing) => {
                let path = self.0.clone();
                Err(PathError::Clash { path, existing })
            }
            _ => Ok(false),
        }
    }
}

/// Whether an error says that nothing is there; nothing is below a file, either.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A name as systems that know no case have it.
pub(super) fn fold(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// What nobody sees: control characters, and those that change the direction of others.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// What every name has to keep, that of a note that is there too.
fn check_name(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("a part of it is empty"),
        "." | ".." => Err("it has `.` or `..` in it"),
        name if name.starts_with('.') => Err("hidden files and folders are not notes"),
        _ => Ok(()),
    }
}

/// What a new name has to keep beside that.
fn check_portable(name: &str) -> Result<(), &'static str> {
    let stem = name
        .split('.')
        .next()
        .unwrap_or(name)
        .trim_end()
        .to_lowercase();
    let numbered = |port: &str| {
        let rest = stem
            .strip_prefix(port)
            .map(|rest| rest.chars().collect::<Vec<_>>());
        matches!(rest.as_deref(), Some(['0'..='9' | '¹' | '²' | '³']))
    };
    if DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt") {
        return Err("Windows keeps such a name for a device");
    }
    if name.contains(FORBIDDEN) {
        return Err("`< > : \" | ? *` do not work on every system, `# ^ [ ]` not in links");
    }
    if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        return Err("a name in it begins or ends with a space or ends with a dot");
    }
    if name.len() > MAX_NAME {
        return Err("a name in it is longer than 200 bytes");
    }
    if !is_nfc(name) {
        return Err("its letters are written in pieces (it is not in Unicode's form NFC)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_paths_are_refused_whatever_is_on_the_disk() {
        let long = format!("{}.md", "x".repeat(2_000));
        for path in [
            "",
            "/etc/passwd.md",
            "../a.md",
            "a/../../b.md",
            "a//b.md",
            "a/./b.md",
            "a\\b.md",
            "C:\\a.md",
            "a\0.md",
            "a\n.md",
            ".git/a.md",
            ".dodona/rules.md",
            "a/.hidden.md",
            "..md",
            "a.txt",
            "a",
            "a.md/",
            "notes/a.md.exe",
            "a\u{202e}dm.md",
            "a\u{200b}.md",
            "//a.md",
            &long,
        ] {
            assert!(NotePath::parse(path, None).is_err(), "{path:?} was taken");
        }
        for path in [
            "a.md",
            "./a.md",
            "deep/er/Ünïcode – 日本.md",
            "a.MARKDOWN",
            "what?.md",
        ] {
            assert!(NotePath::parse(path, None).is_ok(), "{path:?} was refused");
        }
        assert!(NotePath::parse("a.md", Some("notes")).is_err());
        assert!(NotePath::parse("notes2/a.md", Some("notes")).is_err());
        assert!(NotePath::parse("notes/a.md", Some("notes")).is_ok());
    }

    #[test]
    fn a_new_name_works_on_every_system() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "con.md",
            "NUL.tar.md",
            "com1.md",
            "LPT9.md",
            "COM¹.md",
            "what?.md",
            "a:b.md",
            "a<b.md",
            "c#.md",
            "a[b].md",
            "sub./a.md",
            "sub /a.md",
            " a.md",
            "nul/a.md",
            "re\u{301}sume\u{301}.md",
        ] {
            let path = NotePath::parse(name, None).unwrap();
            assert!(
                path.locate(root.path(), None).is_err(),
                "{name:?} was taken"
            );
        }
        for name in ["console.md", "com.md", "com10.md", "Résumé.md"] {
            let path = NotePath::parse(name, None).unwrap();
            assert!(
                path.locate(root.path(), None).is_ok(),
                "{name:?} was refused"
            );
        }
    }

    #[test]
    fn what_is_there_keeps_its_name_and_no_other_may_look_like_it() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("Notes")).unwrap();
        for there in ["Notes/What?.md", "Notes/Caf\u{e9}.md"] {
            fs::write(root.path().join(there), "x").unwrap();
            let path = NotePath::parse(there, None).unwrap();
            assert_eq!(
                path.locate(root.path(), None).unwrap(),
                root.path().join(there)
            );
        }
        for like in [
            "notes/new.md",
            "Notes/WHAT?.md",
            "Notes/cafe\u{301}.md",
            "Notes/CAF\u{c9}.md",
        ] {
            let refused = NotePath::parse(like, None)
                .unwrap()
                .locate(root.path(), None);
            assert!(
                matches!(refused, Err(PathError::Clash { .. })),
                "{like:?} was taken"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_part_of_a_path_is_a_link() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("in")).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        fs::write(folder.path().join("out/a.md"), "x").unwrap();
        symlink(folder.path().join("out"), root.join("link")).unwrap();
        symlink(folder.path().join("out/a.md"), root.join("a.md")).unwrap();
        symlink(root.join("in"), root.join("inside")).unwrap();
        symlink(folder.path().join("nowhere"), root.join("dangling.md")).unwrap();
        for path in [
            "link/a.md",
            "link/new.md",
            "a.md",
            "inside/new.md",
            "dangling.md",
        ] {
            let path = NotePath::parse(path, None).unwrap();
            assert!(path.locate(&root, None).is_err(), "{path:?} was taken");
        }
    }
}
