//! Where the links of notes lead.

use std::collections::HashMap;

use crate::library::FileRow;

/// The notes, by every name a link may use. All in lower case: links are written carelessly.
pub(super) struct Links {
    /// By path without ending.
    by_path: HashMap<String, String>,
    /// By name alone.
    by_name: HashMap<String, Vec<String>>,
}

impl Links {
    pub(super) fn new(notes: &[FileRow]) -> Self {
        let mut links = Self {
            by_path: HashMap::new(),
            by_name: HashMap::new(),
        };
        for note in notes {
            let path = without_ending(&note.path).to_lowercase();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            links
                .by_name
                .entry(name)
                .or_default()
                .push(note.path.clone());
            links.by_path.insert(path, note.path.clone());
        }
        links
    }

    /// The note that a link in `from` leads to: by its path from there, by its path from the
    /// root, or by its name; of several with the name, the one nearest to `from` is meant.
    pub(super) fn resolve(&self, from: &str, target: &str) -> Option<&str> {
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let target = without_ending(target.trim().trim_start_matches('/')).to_lowercase();
        let relative = join(&folder.to_lowercase(), &target);
        let by_path = relative
            .and_then(|path| self.by_path.get(&path))
            .or_else(|| self.by_path.get(&target));
        if let Some(path) = by_path {
            return Some(path);
        }
        let named = self.by_name.get(&target)?;
        let nearness = |path: &&String| (shared(folder, path), std::cmp::Reverse(path.len()));
        named.iter().max_by_key(nearness).map(String::as_str)
    }
}

fn without_ending(path: &str) -> &str {
    [".md", ".markdown", ".MD"]
        .iter()
        .find_map(|ending| path.strip_suffix(ending))
        .unwrap_or(path)
}

/// A path relative to a folder; `None` when it leads out of the root.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// How many folders two paths have in common.
fn shared(folder: &str, path: &str) -> usize {
    folder
        .split('/')
        .zip(path.split('/'))
        .take_while(|(a, b)| a == b)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dodona_proto::SourceKind;

    fn note(path: &str) -> FileRow {
        let (hash, title) = (String::new(), String::new());
        FileRow {
            path: path.to_owned(),
            size: 0,
            mtime_ns: 0,
            hash,
            kind: SourceKind::Note,
            language: None,
            title,
        }
    }

    #[test]
    fn links_lead_where_their_writer_meant() {
        let notes = [
            "index.md",
            "auth/Login.md",
            "auth/index.md",
            "web/login.md",
            "Über uns.md",
        ]
        .map(note);
        let links = Links::new(&notes);
        let cases = [
            ("index.md", "auth/login", Some("auth/Login.md")),
            ("auth/index.md", "Login", Some("auth/Login.md")),
            ("web/x.md", "login", Some("web/login.md")),
            ("auth/Login.md", "../index.md", Some("index.md")),
            ("auth/Login.md", "index", Some("auth/index.md")),
            ("index.md", "über uns", Some("Über uns.md")),
            ("index.md", "nowhere", None),
            ("index.md", "../../etc/passwd", None),
        ];
        for (from, target, expected) in cases {
            assert_eq!(links.resolve(from, target), expected, "{from} → {target}");
        }
    }
}
