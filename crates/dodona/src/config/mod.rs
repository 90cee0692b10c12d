//! The settings in `config.toml`, the user's and a project's.
//!
//! A file is read strictly: what is not a known key, or not a value of its kind, is a fault that
//! is shown with its line. All faults are found in one reading. [`keys::KEYS`] lists what there is.

mod edit;
mod keys;
mod show;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_agent::AgentOptions;
use dodona_hub::HubConfig;
use dodona_knowledge::WebOptions;
use dodona_llm::{EmbedderConfig, ModelConfig};
use dodona_plugin::reading::table_to_json;
use dodona_server::ServerOptions;
use serde_json::Value;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::excerpt::{self, Fault};
use crate::nearest::nearest;
use crate::paint::Paint;
pub(crate) use edit::ConfigFile;
use keys::{KEYS, Key, Scope};
pub(crate) use show::{Entry, entries, new_file};

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

/// Everything that can be set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Calls, limits, the journal.
    pub(crate) hub: HubConfig,
    /// What a project may set for itself.
    pub(crate) project: ProjectSettings,
    /// How the agent works.
    pub(crate) agent: AgentSettings,
    /// The models there are.
    pub(crate) models: BTreeMap<String, ModelConfig>,
    /// What turns passages into vectors.
    pub(crate) embeddings: Option<EmbedderConfig>,
    /// What of the web may be asked.
    pub(crate) web: WebOptions,
    /// Hosts that requests may reach although they are not on the public network.
    pub(crate) allow_hosts: Vec<String>,
    /// Files of projects that may be read although they are ignored or look like secrets.
    pub(crate) files_allow: Vec<String>,
    /// The server.
    pub(crate) server: ServerSettings,
    /// Values that rules can read, the user's.
    pub(crate) rule_settings: BTreeMap<String, Value>,
}

impl Settings {
    /// The values that rules can read, of one file. A project's never replace the user's.
    fn rule_settings_mut(&mut self, layer: Layer) -> &mut BTreeMap<String, Value> {
        match layer {
            Layer::User => &mut self.rule_settings,
            Layer::Project => &mut self.project.rule_settings,
        }
    }
}

/// What is set about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// The most connections at once.
    pub(crate) max_connections: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let connections = ServerOptions::default().connections;
        Self {
            max_connections: u32::try_from(connections).unwrap_or(u32::MAX),
        }
    }
}

/// How the agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentSettings {
    /// Which model answers.
    pub(crate) model: Option<String>,
    /// Models of single agents, by their names.
    pub(crate) models: BTreeMap<String, String>,
    /// How many times it is asked for one question.
    pub(crate) max_turns: u32,
    /// How many tokens of a new conversation it is shown. Default: half of the model's window.
    pub(crate) token_budget: Option<u32>,
    /// How long a tool may take.
    pub(crate) tool_timeout: Duration,
    /// How many tools a model is told of at once.
    pub(crate) tools_limit: u32,
    /// How many passages are looked up for a question.
    pub(crate) preload: u32,
    /// How many turns stay as they are when a conversation is shortened.
    pub(crate) keep_turns: u32,
    /// Which model summarizes what is folded then.
    pub(crate) summarizer: Option<String>,
    /// After how long without a word a session has ended.
    pub(crate) session_idle: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        let AgentOptions {
            max_turns,
            tool_timeout,
            tools_limit,
            preload,
            keep_turns,
            session_idle,
            ..
        } = AgentOptions::default();
        Self {
            model: None,
            models: BTreeMap::new(),
            max_turns,
            token_budget: None,
            tool_timeout,
            tools_limit: u32::try_from(tools_limit).unwrap_or(u32::MAX),
            preload,
            keep_turns,
            summarizer: None,
            session_idle,
        }
    }
}

/// What a project may set for itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProjectSettings {
    /// The folder with its notes.
    pub(crate) vault_root: Option<String>,
    /// Values that rules can read.
    pub(crate) rule_settings: BTreeMap<String, Value>,
}

/// Which file a setting is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The user's.
    User,
    /// The project's, which wins where it may set a key at all.
    Project,
}

/// Where a setting was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// In which file.
    pub(crate) layer: Layer,
    /// In which line.
    pub(crate) line: usize,
}

/// A project's own file.
pub(crate) fn project_file(root: &Path) -> PathBuf {
    root.join(".dodona").join("config.toml")
}

/// The user's settings. Without the file they are the defaults.
pub(crate) fn load(path: &Path) -> Result<Settings, ConfigError> {
    let mut reading = Reading::default();
    reading.file(path, Layer::User)?;
    Ok(reading.settings)
}

/// What is in force in a project, and where each key that somebody set was set.
pub(crate) fn load_with_project(
    user: &Path,
    root: Option<&Path>,
) -> Result<(Settings, BTreeMap<String, Origin>), ConfigError> {
    let mut reading = Reading::default();
    reading.file(user, Layer::User)?;
    if let Some(root) = root {
        let file = project_file(root);
        must_be_inside(&file)?;
        reading.file(&file, Layer::Project)?;
    }
    Ok((reading.settings, reading.origins))
}

/// Refuses a project's file behind a symbolic link: a clone could make us read and quote any file.
fn must_be_inside(file: &Path) -> Result<(), ConfigError> {
    let is_link = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|found| found.is_symlink())
    };
    if !is_link(file) && !file.parent().is_some_and(is_link) {
        return Ok(());
    }
    let why = "a project's settings must not be a symbolic link";
    Err(ConfigError::Read {
        path: file.to_owned(),
        source: io::Error::new(io::ErrorKind::PermissionDenied, why),
    })
}

/// The settings, and what is wrong with the text they are in.
#[cfg(test)]
fn parse(text: &str, layer: Layer) -> (Settings, Vec<Fault>) {
    let mut reading = Reading::default();
    reading.text(text, layer);
    (reading.settings, reading.faults)
}

/// Files as they are read one over the other.
struct Reading<'f> {
    text: &'f str,
    layer: Layer,
    settings: Settings,
    origins: BTreeMap<String, Origin>,
    faults: Vec<Fault>,
}

impl Default for Reading<'_> {
    fn default() -> Self {
        Self {
            text: "",
            layer: Layer::User,
            settings: Settings::default(),
            origins: BTreeMap::new(),
            faults: Vec::new(),
        }
    }
}

impl Reading<'_> {
    /// Reads a file over what was read before; one that is not there says nothing.
    fn file(&mut self, path: &Path, layer: Layer) -> Result<(), ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => {
                let path = path.to_owned();
                return Err(ConfigError::Read { path, source });
            }
        };
        self.text(&text, layer);
        let faults = std::mem::take(&mut self.faults);
        if faults.is_empty() {
            return Ok(());
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

    fn text(&mut self, text: &str, layer: Layer) {
        let mut reading = Reading {
            text,
            layer,
            settings: std::mem::take(&mut self.settings),
            origins: std::mem::take(&mut self.origins),
            faults: std::mem::take(&mut self.faults),
        };
        match DeTable::parse(text) {
            Ok(table) => {
                reading.table(table.get_ref(), &mut Vec::new());
                if layer == Layer::User {
                    // What cannot be written as JSON is no valid setting either.
                    reading.settings.hub.global =
                        table_to_json(table.get_ref()).unwrap_or_default();
                }
            }
            Err(error) => reading.faults.push(Fault {
                span: error.span().unwrap_or(0..0),
                message: error.message().to_owned(),
                hint: None,
            }),
        }
        self.settings = reading.settings;
        self.origins = reading.origins;
        self.faults = reading.faults;
    }

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
            (Some(known), _) if self.layer == Layer::Project && known.scope == Scope::User => {
                let message = format!("`{name}` cannot be set by a project");
                let hint =
                    "set it in your own `config.toml`; `dodona config path` shows where it is";
                self.fault(key.span(), message, Some(hint.to_owned()));
            }
            (Some(known), _) => self.set(known, path, value),
            (None, DeValue::Table(table)) if has_below => self.table(table, path),
            (None, other) if has_below => {
                let message = format!("`{name}` is a table, not {}", article(other));
                let hint = format!("write `[{name}]` and its keys below");
                self.fault(value.span(), message, Some(hint));
            }
            (None, _) => {
                let message = format!("unknown setting `{name}`");
                self.fault(key.span(), message, Some(meant(path)));
            }
        }
    }

    fn set(&mut self, key: &Key, path: &[&str], value: &Spanned<DeValue<'_>>) {
        let name = path.join(".");
        match key.set(&mut self.settings, self.layer, path, value) {
            Ok(()) => {
                let (line, _) = excerpt::line_and_column(self.text, value.span().start);
                let layer = self.layer;
                let shown = match (layer, path.first()) {
                    (Layer::Project, Some(&RULE_SETTINGS)) => format!("{PROJECT}.{name}"),
                    _ => name,
                };
                self.origins.insert(shown, Origin { layer, line });
            }
            Err((span, expected)) => self.fault(span, format!("`{name}`: {expected}"), None),
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

/// The table of values that rules can read.
const RULE_SETTINGS: &str = "settings";

/// What begins the names of a project's values for rules, where both are shown.
const PROJECT: &str = "project";

/// What is wrong with a text, as one of the two files.
pub(crate) fn faults(text: &str, layer: Layer) -> Vec<Fault> {
    let mut reading = Reading::default();
    reading.text(text, layer);
    reading.faults
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
