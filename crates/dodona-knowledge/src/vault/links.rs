//! Where the links of notes lead.

use std::collections::{HashMap, HashSet};

use crate::parse::markdown::EXTENSIONS;

/// The notes, by every name a link may use. All in lower case: links are written carelessly.
pub(super) struct Links {
    /// The paths as they are, for links that are written with care.
    exact: HashSet<String>,
    /// By path without ending.
    by_path: HashMap<String, String>,
    /// By name alone.
    by_name: HashMap<String, Vec<String>>,
    /// By another name that a note's frontmatter gives it.
    by_alias: HashMap<String, Vec<String>>,
}

impl Links {
    /// Of these notes, and of their aliases with the path of each.
    pub(super) fn new<'n>(
        notes: impl IntoIterator<Item = &'n str>,
        aliases: Vec<(String, String)>,
    ) -> Self {
        let mut links = Self {
            exact: HashSet::new(),
            by_path: HashMap::new(),
            by_name: HashMap::new(),
            by_alias: HashMap::new(),
        };
        for note in notes {
            let path = note.to_lowercase();
            let path = without_ending(&path).to_owned();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            links.by_name.entry(name).or_default().push(note.to_owned());
            links.by_path.insert(path, note.to_owned());
            links.exact.insert(note.to_owned());
        }
        for (alias, path) in aliases {
            let alias = alias.trim().to_lowercase();
            links.by_alias.entry(alias).or_default().push(path);
        }
        links
    }

    /// The note that a link in `from` leads to: by its path from there, by its path from the
    /// root, by its name, or by another name it has; of several, the one nearest to `from` is meant.
    pub(super) fn resolve(&self, from: &str, target: &str) -> Option<&str> {
        let by_path = self.by_path(from, target);
        if let Some(path) = by_path.or_else(|| self.by_path("", target)) {
            return Some(path);
        }
        let folder = folder(from);
        let written = target.trim().to_lowercase();
        let target = without_ending(written.trim_start_matches('/'));
        let named = self
            .by_name
            .get(target)
            .or_else(|| self.by_alias.get(&written))?;
        let nearness = |path: &&String| (shared(folder, path), std::cmp::Reverse(path.len()));
        named.iter().max_by_key(nearness).map(String::as_str)
    }

    /// The note at a path that is written from another note, or from the root with a `/`: letter for
    /// letter, or carelessly. So do other programs follow Markdown links.
    pub(super) fn by_path(&self, from: &str, target: &str) -> Option<&str> {
        let target = target.trim();
        let path = match target.strip_prefix('/') {
            Some(rooted) => join("", rooted)?,
            None => join(folder(from), target)?,
        };
        let careless = || self.by_path.get(without_ending(&path.to_lowercase()));
        let found = self.exact.get(&path).or_else(careless);
        found.map(String::as_str)
    }

    /// Whether this is only the other name of a note.
    pub(super) fn is_alias(&self, target: &str) -> bool {
        let written = target.trim().to_lowercase();
        let name = without_ending(&written);
        self.by_alias.contains_key(&written)
            && !self.by_path.contains_key(name)
            && !self.by_name.contains_key(name)
    }
}

/// The folder of a note.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A note's path without its ending.
pub(super) fn without_ending(path: &str) -> &str {
    let Some((stem, ending)) = path.rsplit_once('.') else {
        return path;
    };
    let is_note = EXTENSIONS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(ending));
    match is_note && !stem.is_empty() && !stem.ends_with('/') {
        true => stem,
        false => path,
    }
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

    #[test]
    fn links_lead_where_their_writer_meant() {
        let notes = [
            "index.md",
            "auth/Login.md",
            "auth/index.md",
            "web/login.md",
            "Über uns.md",
        ];
        let aliases = [("Sign in", "web/login.md"), ("index", "Über uns.md")]
            .map(|(alias, path)| (alias.to_owned(), path.to_owned()));
        let links = Links::new(notes, aliases.to_vec());
        let cases = [
            ("index.md", "SIGN IN", Some("web/login.md")),
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
