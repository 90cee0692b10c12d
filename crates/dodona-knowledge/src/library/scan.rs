//! Which files a project has.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::{DirEntry, WalkBuilder};

use super::access::FileAccess;

/// Files above this size are not read: they are data, not text that somebody wrote.
const MAX_BYTES: u64 = 1 << 20;

/// A line longer than this, or an average above the other, is a machine's work.
const MAX_LINE: usize = 20_000;
const MAX_AVERAGE_LINE: usize = 400;

/// A file on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Below the root, with `/`.
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) mtime_ns: i64,
}

/// Files that were passed over, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) huge: u64,
    pub(crate) binary: u64,
    pub(crate) generated: u64,
    pub(crate) unreadable: u64,
}

impl Skipped {
    /// Counts these as well.
    pub(super) fn add(&mut self, more: &Self) {
        self.huge += more.huge;
        self.binary += more.binary;
        self.generated += more.generated;
        self.unreadable += more.unreadable;
    }

    /// All of them.
    pub(crate) fn total(&self) -> u64 {
        self.huge + self.binary + self.generated + self.unreadable
    }
}

/// What a project has on the disk.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Every file that is not ignored, in the order of their paths.
    pub(super) files: Vec<Found>,
    /// Every directory that is not ignored, the root included.
    pub(super) dirs: HashSet<PathBuf>,
    /// What was passed over.
    pub(super) skipped: Skipped,
}

/// Looks at everything that is neither ignored nor closed.
pub(super) fn walk(root: &Path, access: &FileAccess) -> Tree {
    let mut tree = Tree::default();
    let (found, skipped) = (&mut tree.files, &mut tree.skipped);
    // A `.gitignore` counts whether or not the project is a repository yet.
    let (base, access) = (root.to_owned(), access.clone());
    let is_open = move |entry: &DirEntry| {
        let path = entry.path().strip_prefix(&base);
        path.is_ok_and(|path| access.check_name(&base, path).is_ok())
    };
    for entry in WalkBuilder::new(root)
        .require_git(false)
        .follow_links(false)
        .filter_entry(is_open)
        .build()
    {
        let Ok(entry) = entry else {
            skipped.unreadable += 1;
            continue;
        };
        let Some(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            tree.dirs.insert(entry.into_path());
            continue;
        }
        if !kind.is_file() {
            continue;
        }
        let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
        let (Some(path), Ok(metadata)) = (path, entry.metadata()) else {
            skipped.unreadable += 1;
            continue;
        };
        if metadata.len() > MAX_BYTES {
            skipped.huge += 1;
            continue;
        }
        found.push(Found {
            path: path.replace('\\', "/"),
            size: metadata.len(),
            mtime_ns: mtime_ns(&metadata),
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    tree
}

fn mtime_ns(metadata: &Metadata) -> i64 {
    let since = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

/// A file's text, if somebody wrote it.
pub(super) fn read(root: &Path, path: &str, skipped: &mut Skipped) -> Option<String> {
    let Ok(bytes) = std::fs::read(root.join(path)) else {
        skipped.unreadable += 1;
        return None;
    };
    if bytes.iter().take(8 << 10).any(|byte| *byte == 0) {
        skipped.binary += 1;
        return None;
    }
    let Ok(text) = String::from_utf8(bytes) else {
        skipped.binary += 1;
        return None;
    };
    if is_generated(&text) {
        skipped.generated += 1;
        return None;
    }
    Some(text)
}

fn is_generated(text: &str) -> bool {
    let (lines, longest) = text.lines().fold((0, 0), |(count, longest), line| {
        (count + 1, longest.max(line.len()))
    });
    longest > MAX_LINE
        || (text.len() > 8 << 10 && text.len() / std::cmp::max(lines, 1) > MAX_AVERAGE_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_hidden_binary_huge_and_generated_files_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        write("src/a.rs", b"fn a() {}\n");
        write("note.md", "# Grüße\n".as_bytes());
        write(".gitignore", b"target/\n");
        write("target/x.rs", b"fn x() {}");
        write(".git/config", b"x");
        write("pic.png", b"\x89PNG\0\0");
        write("latin.txt", b"caf\xe9");
        write("huge.txt", &vec![b'x'; 2 << 20]);
        write("app.min.js", "var a=1;".repeat(4000).as_bytes());
        let Tree {
            files,
            dirs,
            mut skipped,
        } = walk(root, &FileAccess::default());
        assert_eq!(dirs, HashSet::from([root.to_owned(), root.join("src")]));
        let kept: Vec<&str> = files
            .iter()
            .filter(|file| read(root, &file.path, &mut skipped).is_some())
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(kept, ["note.md", "src/a.rs"]);
        assert_eq!(
            skipped,
            Skipped {
                huge: 1,
                binary: 2,
                generated: 1,
                unreadable: 0
            }
        );
        assert_eq!(skipped.total(), 4);
    }
}
