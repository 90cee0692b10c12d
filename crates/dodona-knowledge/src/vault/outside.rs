//! What editors and other programs did to notes.

use std::collections::HashMap;
use std::path::Path;

use super::change::{Found, version_of};
use super::disk;
use super::error::MAX_NOTE;

/// What is other than it was last seen. `notes` are paths and versions as a look at the disk found
/// them, which may be a moment old: the files decide.
pub(super) fn compare(
    root: &Path,
    notes: Vec<(String, String)>,
    mut heads: HashMap<String, String>,
) -> Vec<Found> {
    let mut found = Vec::new();
    for (path, version) in notes {
        let before = heads.remove(&path);
        if before.as_deref() != Some(&version) {
            found.extend(changed(root, path, before));
        }
    }
    for (path, before) in heads {
        // A note may be ignored from now on, or not be seen yet.
        if let Ok(None) = disk::read(&root.join(&path)) {
            found.push(Found {
                path,
                before: Some(before),
                after: None,
                origin: None,
            });
        }
    }
    pair(&mut found);
    found
}

fn changed(root: &Path, path: String, before: Option<String>) -> Option<Found> {
    let after = disk::read(&root.join(&path)).ok()??;
    let is_new = before.as_deref() != Some(&version_of(&after));
    (is_new && after.len() <= MAX_NOTE).then_some(Found {
        path,
        before,
        after: Some(after),
        origin: None,
    })
}

/// A note that is gone and one that is new with the same text are one that was moved.
fn pair(found: &mut [Found]) {
    let gone = found.iter().filter(|found| found.after.is_none());
    let mut gone: HashMap<String, Vec<String>> = gone.fold(HashMap::new(), |mut gone, found| {
        let version = found.before.clone().unwrap_or_default();
        gone.entry(version).or_default().push(found.path.clone());
        gone
    });
    for new in found.iter_mut().filter(|found| found.before.is_none()) {
        let version = new.after.as_deref().map(version_of).unwrap_or_default();
        new.origin = gone.get_mut(&version).and_then(Vec::pop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_renames_and_removals_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).unwrap();
        write("same.md", "same");
        write("edited.md", "new");
        write("renamed.md", "moved");
        write("fresh.md", "fresh");
        write("unseen.md", "unseen");
        let version = |text: &str| version_of(text.as_bytes());
        let seen = ["same", "edited", "renamed", "fresh"].map(|name| {
            let text = std::fs::read(root.path().join(format!("{name}.md"))).unwrap();
            (format!("{name}.md"), version_of(&text))
        });
        let heads = [
            ("same.md", "same"),
            ("edited.md", "old"),
            ("moved.md", "moved"),
            ("gone.md", "gone"),
            ("unseen.md", "unseen"),
        ]
        .map(|(path, text)| (path.to_owned(), version(text)));
        let mut found = compare(root.path(), seen.to_vec(), HashMap::from(heads));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let told: Vec<_> = found
            .iter()
            .map(|f| {
                (
                    f.path.as_str(),
                    f.before.is_some(),
                    f.after.is_some(),
                    f.origin.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("edited.md", true, true, None),
                ("fresh.md", false, true, None),
                ("gone.md", true, false, None),
                ("moved.md", true, false, None),
                ("renamed.md", false, true, Some("moved.md")),
            ]
        );
    }
}
