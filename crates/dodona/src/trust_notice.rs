//! The line on standard error that says which parts of a project are inactive.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::home::Home;
use crate::session::Session;
use crate::shell::tell;

/// Remembers below the data directory which notices were printed: the hash by project.
const FILE: &str = "trust-notices.json";

/// The folders below `.dodona/` that need trust.
const FOLDERS: [&str; 4] = ["agents", "plugins", "prompts", "rules"];

/// What `hub.trust` returns, as far as it matters here.
#[derive(Deserialize)]
struct Trust {
    state: String,
    hash: Option<String>,
    items: Vec<Item>,
    changes: Vec<Change>,
    problem: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Change {
    change: String,
}

/// Prints what is inactive in an untrusted project, once per change. A command never fails because
/// of this.
pub(crate) async fn print_once(session: &Session, root: &Path) {
    let has_any = FOLDERS
        .iter()
        .any(|folder| root.join(".dodona").join(folder).exists());
    if !has_any {
        return;
    }
    let Ok(trust) = session.ask::<Trust>("hub.trust", json!({})).await else {
        return;
    };
    let Some(line) = trust.line() else { return };
    let mark = trust.hash.unwrap_or_else(|| line.clone());
    let Ok(home) = Home::find() else { return };
    if is_new(&home.data.join(FILE), root, &mark) {
        tell(&line);
    }
}

impl Trust {
    /// The line, if something is inactive.
    fn line(&self) -> Option<String> {
        let review = "review it with `dodona trust show`";
        if let Some(problem) = &self.problem {
            return Some(format!(
                "note: this project cannot be trusted, so its rules, plugins, prompts and agents are inactive: {problem}; {review}"
            ));
        }
        match self.state.as_str() {
            "untrusted" => Some(format!(
                "note: inactive in this project, because it is not trusted: {}; {review}",
                self.counts()
            )),
            "changed" => {
                let changed = self.changes.iter();
                let changed = changed.filter(|change| change.change != "removed").count();
                Some(format!(
                    "note: this project has changed since it was trusted, so {} inactive; {review}",
                    match changed {
                        0 => "its plugins, prompts and agents are".to_owned(),
                        1 => "1 file is".to_owned(),
                        many => format!("{many} files are"),
                    }
                ))
            }
            _ => None,
        }
    }

    /// As in `2 rules, 1 plugin`.
    fn counts(&self) -> String {
        let kinds = [
            ("rule", &["rule"][..]),
            ("plugin", &["script", "process", "plugin"][..]),
            ("prompt", &["prompt"][..]),
            ("agent", &["agent"][..]),
        ];
        let counts = kinds.into_iter().filter_map(|(word, kinds)| {
            let is_one = |item: &&Item| {
                let is_script = item.kind == "rule" && !item.name.ends_with(".toml");
                kinds.contains(&item.kind.as_str()) && !is_script
            };
            match self.items.iter().filter(is_one).count() {
                0 => None,
                1 => Some(format!("1 {word}")),
                many => Some(format!("{many} {word}s")),
            }
        });
        let counts: Vec<String> = counts.collect();
        match counts.is_empty() {
            true => "its files".to_owned(),
            false => counts.join(", "),
        }
    }
}

/// Whether the notice for this project was not printed yet. Then it counts as printed.
fn is_new(file: &Path, root: &Path, mark: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut printed: BTreeMap<String, String> = serde_json::from_str(&text).unwrap_or_default();
    let root = root.display().to_string();
    if printed.get(&root).is_some_and(|known| known == mark) {
        return false;
    }
    printed.insert(root, mark.to_owned());
    // One that cannot be stored is printed again.
    let _ = store(file, &printed);
    true
}

fn store(file: &Path, printed: &BTreeMap<String, String>) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(&new)?;
    written.write_all(json!(printed).to_string().as_bytes())?;
    fs::rename(&new, file)
}
