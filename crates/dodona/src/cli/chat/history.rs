//! What was typed in earlier chats: one JSON text in each line of a file that only its owner reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many entries are kept.
const ENTRIES: usize = 1000;

/// How many entries more the file may have before it is written anew.
const SLACK: usize = 200;

/// The largest entry that is kept, in bytes.
const LARGEST: usize = 16 << 10;

/// The history of a home.
pub(super) struct History {
    path: PathBuf,
}

impl History {
    /// The history in this data directory.
    pub(super) fn of(data: &Path) -> Self {
        Self {
            path: data.join("chat-history"),
        }
    }

    /// The entries, the oldest first. What cannot be read is left out: a history is a comfort.
    pub(super) fn load(&self) -> Vec<String> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, path = %self.path.display(), "could not read the history");
                }
                return Vec::new();
            }
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let mut entries: Vec<String> = lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let surplus = entries.len().saturating_sub(ENTRIES);
        if surplus > 0 {
            entries.drain(..surplus);
        }
        if surplus > SLACK
            && let Err(error) = self.rewrite(&entries)
        {
            tracing::warn!(%error, path = %self.path.display(), "could not shorten the history");
        }
        entries
    }

    /// Adds an entry.
    pub(super) fn add(&self, entry: &str) {
        if entry.len() > LARGEST {
            return;
        }
        let written = private(OpenOptions::new().append(true).create(true), &self.path)
            .and_then(|mut file| file.write_all(line(entry).as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.path.display(), "could not write the history");
        }
    }

    /// Puts a new file in the place of the old one, so that a crash leaves one of the two.
    fn rewrite(&self, entries: &[String]) -> io::Result<()> {
        let next = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = private(options.write(true).create(true).truncate(true), &next)?;
        let text: String = entries.iter().map(|entry| line(entry)).collect();
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, &self.path)
    }
}

fn line(entry: &str) -> String {
    format!("{}\n", serde_json::Value::from(entry))
}

/// Opens a file that is made for its owner's eyes only.
fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_several_lines_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::of(folder.path());
        assert_eq!(history.load(), Vec::<String>::new());
        history.add("one");
        history.add("two\nlines \"quoted\"");
        history.add(&"x".repeat(LARGEST + 1));
        assert_eq!(history.load(), ["one", "two\nlines \"quoted\""]);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let history = History::of(folder.path());
        history.add("one");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&history.path), 0o600);
        history.rewrite(&["two".to_owned()]).unwrap();
        assert_eq!(mode(&history.path), 0o600);
    }

    #[test]
    fn it_has_an_end_and_survives_a_damaged_line() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::of(folder.path());
        let many = ENTRIES + SLACK + 1;
        let lines: String = (0..many).map(|n| line(&n.to_string())).collect();
        fs::write(&history.path, format!("no JSON\n\u{0}\n{lines}")).unwrap();
        let entries = history.load();
        assert_eq!(entries.len(), ENTRIES);
        assert_eq!(entries.last(), Some(&(many - 1).to_string()));
        let stored = fs::read_to_string(&history.path).unwrap();
        assert_eq!(stored.lines().count(), ENTRIES);
    }
}
