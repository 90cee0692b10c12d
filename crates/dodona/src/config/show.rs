//! Settings as they are shown, and as a new file offers them.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::keys::{self, KEYS, Scope};
use super::{Layer, Origin, PROJECT, RULE_SETTINGS, Settings};

/// A setting that is in force.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    /// Its dotted name.
    pub(crate) key: String,
    /// Its value as it would be written; `None` where there is none.
    pub(crate) value: Option<String>,
    /// Where it was set; `None` for a default.
    #[serde(skip)]
    pub(crate) origin: Option<Origin>,
}

/// Every setting, in the order of the reference. A key whose name the user chooses is there for
/// each name that was set.
pub(crate) fn entries(mut settings: Settings, origins: &BTreeMap<String, Origin>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for key in KEYS {
        let names: Vec<&str> = match key.is_open() {
            false => vec![key.name],
            true => origins
                .keys()
                .map(String::as_str)
                .filter(|name| key.matches(&name.split('.').collect::<Vec<_>>()))
                .collect(),
        };
        for name in names {
            let chosen = key.chosen(name);
            entries.push(Entry {
                key: name.to_owned(),
                value: key.show(&mut settings, chosen),
                origin: origins.get(name).cloned(),
            });
        }
    }
    let prefix = format!("{PROJECT}.{RULE_SETTINGS}.");
    let of_project = origins
        .iter()
        .filter_map(|(name, origin)| Some((name, name.strip_prefix(&prefix)?, origin)));
    for (name, setting, origin) in of_project {
        let value = settings.project.rule_settings.get(setting);
        entries.push(Entry {
            key: name.clone(),
            value: value.and_then(keys::shown_setting),
            origin: Some(origin.clone()),
        });
    }
    entries
}

/// A file that says what can be set and sets nothing.
pub(crate) fn new_file(layer: Layer) -> String {
    let mut text = String::from(match layer {
        Layer::User => {
            "# Settings of Dodona for everything you do. A line that begins with `#` and no space\n\
             # is a key with its default: remove the `#` to set it.\n"
        }
        Layer::Project => {
            "# Settings of Dodona for this project. A line that begins with `#` and no space is a\n\
             # key: remove the `#` to set it. Everything else is set in your own `config.toml`;\n\
             # `dodona config show --origin` tells what is in force and why.\n"
        }
    });
    let wanted = KEYS
        .iter()
        .filter(|key| layer == Layer::User || key.scope == Scope::Project);
    let mut table = "";
    for key in wanted {
        if let Some((header, lines)) = key.example_table() {
            let _ = write!(text, "\n# {}\n#[{header}]\n", sentence(key.about));
            lines
                .iter()
                .for_each(|line| text.push_str(&format!("#{line}\n")));
            continue;
        }
        if key.is_open() {
            continue;
        }
        let (above, last) = key.name.rsplit_once('.').unwrap_or(("", key.name));
        if above != table {
            let _ = write!(text, "\n[{above}]\n");
            table = above;
        }
        let value = key.default().unwrap_or_else(|| key.example().to_owned());
        let _ = write!(text, "# {}\n#{last} = {value}\n", sentence(key.about));
    }
    text
}

/// A meaning as a comment of one line.
fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
