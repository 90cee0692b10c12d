//! Instructions for agents in the root of a project.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use dodona_plugin::ProjectInstructions;

/// The files that can have them, the preferred one first.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Reads the first file that is there and has text. A link is not followed, because it may lead out
/// of the project.
pub(super) fn read(root: &Path) -> Option<ProjectInstructions> {
    FILES.iter().find_map(|file| read_file(root, file))
}

fn read_file(root: &Path, file: &'static str) -> Option<ProjectInstructions> {
    let path = root.join(file);
    let metadata = fs::symlink_metadata(&path)
        .ok()
        .filter(fs::Metadata::is_file)?;
    let most = ProjectInstructions::MAX_BYTES as u64;
    let mut bytes = Vec::new();
    File::open(&path)
        .ok()?
        .take(most)
        .read_to_end(&mut bytes)
        .ok()?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if metadata.len() > most {
        // The last line may be cut.
        text.truncate(text.rfind('\n').unwrap_or(text.len()));
    }
    let text = text.trim().to_owned();
    if text.is_empty() {
        return None;
    }
    Some(ProjectInstructions {
        file,
        text,
        bytes: metadata.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_file_comes_before_the_other_and_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(read(root), None);
        fs::write(root.join("CLAUDE.md"), "Use tabs.\n").unwrap();
        assert_eq!(read(root).unwrap().text, "Use tabs.");
        fs::write(root.join("AGENTS.md"), "line\n".repeat(10_000)).unwrap();
        let found = read(root).unwrap();
        assert_eq!((found.file, found.bytes), ("AGENTS.md", 50_000));
        assert!(found.text.len() <= ProjectInstructions::MAX_BYTES);
        assert!(found.text.ends_with("\nline"));
        fs::write(root.join("AGENTS.md"), " \n").unwrap();
        assert_eq!(read(root).unwrap().file, "CLAUDE.md");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        let link = folder.path().join("AGENTS.md");
        std::os::unix::fs::symlink(folder.path().join("secret"), link).unwrap();
        assert_eq!(read(folder.path()), None);
    }
}
