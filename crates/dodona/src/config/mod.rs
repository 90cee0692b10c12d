//! The settings in `config.toml`.
//!
//! The file is read strictly: what is not a known key, or not a value of its kind, is a fault that
//! is shown with its line. All faults are found in one reading. [`keys::KEYS`] lists what there is.

mod keys;

use std::io;
use std::path::{Path, PathBuf};

use dodona_hub::HubConfig;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::excerpt::{self, Fault};
use crate::nearest::nearest;
use crate::paint::Paint;
use keys::KEYS;

/// Settings that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// The file is there and cannot be read.
    #[error("could not read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has faults.
    #[error("{}", lines(path, text, faults))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is in it.
        text: String,
        /// What is wrong with it, at least one thing.
        faults: Vec<Fault>,
        /// All of that, for standard error.
        drawn: String,
    },
}

/// Each fault on a line, with its place.
fn lines(path: &Path, text: &str, faults: &[Fault]) -> String {
    let told = faults.iter().map(|fault| {
        let (line, column) = excerpt::line_and_column(text, fault.span.start);
        let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})"));
        let message = &fault.message;
        let path = path.display();
        format!(
            "{path}:{line}:{column}: {message}{}",
            hint.unwrap_or_default()
        )
    });
    told.collect::<Vec<_>>().join("\n")
}

/// The settings in a file. Without the file they are the defaults.
pub(crate) fn load(path: &Path) -> Result<HubConfig, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HubConfig::default()),
        Err(source) => {
            let path = path.to_owned();
            return Err(ConfigError::Read { path, source });
        }
    };
    let (config, faults) = parse(&text);
    if faults.is_empty() {
        return Ok(config);
    }
    let paint = Paint::of(&io::stderr());
    let drawn = excerpt::draw(&path.display().to_string(), &text, &faults, paint);
    let path = path.to_owned();
    Err(ConfigError::Wrong {
        path,
        text,
        faults,
        drawn,
    })
}

/// The settings, and what is wrong with the text they are in.
fn parse(text: &str) -> (HubConfig, Vec<Fault>) {
    let mut reading = Reading::default();
    match DeTable::parse(text) {
        Ok(table) => reading.table(table.get_ref(), &mut Vec::new()),
        Err(error) => reading.faults.push(Fault {
            span: error.span().unwrap_or(0..0),
            message: error.message().to_owned(),
            hint: None,
        }),
    }
    (reading.config, reading.faults)
}

#[derive(Default)]
struct Reading {
    config: HubConfig,
    faults: Vec<Fault>,
}

impl Reading {
    /// Reads the keys of a table that is at `path`.
    fn table<'t>(&mut self, table: &'t DeTable<'t>, path: &mut Vec<&'t str>) {
        for (key, value) in table {
            path.push(key.get_ref());
            self.entry(key, value, path);
            path.pop();
        }
    }

    fn entry<'t>(
        &mut self,
        key: &Spanned<std::borrow::Cow<'t, str>>,
        value: &'t Spanned<DeValue<'t>>,
        path: &mut Vec<&'t str>,
    ) {
        let name = path.join(".");
        let known = KEYS.iter().find(|key| key.matches(path));
        let has_below = KEYS.iter().any(|key| key.is_below(path));
        match (known, value.get_ref()) {
            (Some(key), value_at) => {
                if let Err(expected) = key.set(&mut self.config, path, value_at) {
                    let message = format!("`{name}`: {expected}");
                    self.fault(value.span(), message, None);
                }
            }
            (None, DeValue::Table(table)) if has_below => self.table(table, path),
            (None, other) if has_below => {
                let message = format!("`{name}` is a table, not {}", article(other));
                let hint = format!("write `[{name}]` and its keys below");
                self.fault(value.span(), message, Some(hint));
            }
            (None, _) => {
                let message = format!("there is no setting `{name}`");
                self.fault(key.span(), message, Some(meant(path)));
            }
        }
    }

    fn fault(&mut self, span: std::ops::Range<usize>, message: String, hint: Option<String>) {
        self.faults.push(Fault {
            span,
            message,
            hint,
        });
    }
}

/// What an unknown key may have meant: the nearest one beside it, or what there is there.
fn meant(path: &[&str]) -> String {
    let (last, table) = path.split_last().expect("a key has a name");
    let mut beside: Vec<&str> = KEYS.iter().filter_map(|key| key.child_of(table)).collect();
    beside.dedup();
    if let Some(near) = nearest(last, beside.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let last_parts = KEYS.iter().map(|key| (key.last(), key.name));
    if let Some((_, elsewhere)) = last_parts.clone().find(|(part, _)| part == last) {
        return format!("did you mean `{elsewhere}`?");
    }
    format!("there is {}", beside.join(", "))
}

fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {kind}")
}

#[cfg(test)]
mod tests;
