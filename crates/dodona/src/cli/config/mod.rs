//! `dodona config`.

mod set;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::{self, Entry, Layer, Origin};
use crate::failure::Failure;
use crate::home::Home;
use crate::nearest::nearest;
use crate::paint::{Paint, harmless};
use crate::project;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona config show                  what is in force here
  dodona config show --origin         and which file and line set it
  dodona config path                  which files are read
  dodona config get agent.max_turns
  dodona config set agent.max_turns 20
  dodona config set settings.strict true             rules read `context.user.settings.strict`
  dodona config set settings.strict true --project   rules read `context.project.settings.strict`
  dodona config unset settings.strict

Without `--project`, `set` and `unset` change your own settings. With it they change those of the
project: the nearest one, or the directory that is named.";

/// Show and change settings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show every setting with its value
    Show {
        /// Show the file and line that set each value
        #[arg(long)]
        origin: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one setting
    Get {
        /// The key, such as `agent.max_turns`; `project.settings.NAME` for a project's own
        key: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a value in your settings, or with `--project` in the project's
    Set(set::Set),
    /// Remove a value from your settings, or with `--project` from the project's
    Unset(set::Unset),
    /// List the settings files that are read
    Path {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The files that are read.
struct Files {
    user: PathBuf,
    project: Option<PathBuf>,
}

impl Files {
    fn of(&self, layer: Layer) -> &Path {
        match (layer, &self.project) {
            (Layer::Project, Some(project)) => project,
            _ => &self.user,
        }
    }
}

impl Config {
    /// `--project` takes an optional directory, and may have taken the key instead.
    pub(crate) fn take_key_from(&mut self, project: &mut Option<OsString>) {
        match &mut self.command {
            Command::Set(set) => set.take_key_from(project),
            Command::Unset(unset) => unset.take_key_from(project),
            _ => {}
        }
    }

    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Command::Set(set) => set.run(shell).await,
            Command::Unset(unset) => unset.run(shell).await,
            read => Self { command: read }.show(shell),
        }
    }

    fn show(self, shell: &Shell) -> Result<(), Failure> {
        let root = project::root(shell.project.as_deref())?;
        let files = Files {
            user: Home::find()?.config_file(),
            project: root.as_deref().map(config::project_file),
        };
        match self.command {
            Command::Path { json } => super::print(&paths(&files, json)),
            Command::Show { origin, json } => {
                let (settings, origins) = config::load_with_project(&files.user, root.as_deref())?;
                let entries = config::entries(settings, &origins);
                let text = match json {
                    true => as_json(&entries, &files),
                    false => table(&entries, origin.then_some(&files)),
                };
                super::print(&text)
            }
            Command::Get { key, json } => {
                let (settings, origins) = config::load_with_project(&files.user, root.as_deref())?;
                let entries = config::entries(settings, &origins);
                super::print(&one(&entries, &key, &files, json)?)
            }
            Command::Set(_) | Command::Unset(_) => Ok(()),
        }
    }
}

/// One setting by its key.
fn one(entries: &[Entry], key: &str, files: &Files, json: bool) -> Result<String, Failure> {
    let Some(entry) = entries.iter().find(|entry| entry.key == key) else {
        let keys = entries.iter().map(|entry| entry.key.as_str());
        let failure = Failure::usage(format!("unknown setting `{key}`"));
        return Err(match nearest(key, keys) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`dodona config show` lists the settings"),
        });
    };
    Ok(match json {
        true => as_json(std::slice::from_ref(entry), files),
        false => format!("{}\n", harmless(value(entry))),
    })
}

fn paths(files: &Files, json: bool) -> String {
    let project = files.project.as_deref();
    if json {
        let value = json!({ "user": files.user, "project": project });
        return format!("{value}\n");
    }
    let all = std::iter::once(files.user.as_path()).chain(project);
    let paint = Paint::of(&io::stdout());
    let line = |file: &Path| match file.exists() {
        true => format!("{}\n", file.display()),
        false => format!("{}  {}\n", file.display(), paint.dim("(not there)")),
    };
    all.map(line).collect()
}

fn as_json(entries: &[Entry], files: &Files) -> String {
    let shown: BTreeMap<&str, Value> = entries
        .iter()
        .map(|entry| {
            let origin = match &entry.origin {
                Some(Origin { layer, line }) => {
                    json!({ "file": files.of(*layer), "line": line })
                }
                None => Value::Null,
            };
            let value = json!({ "value": entry.value, "origin": origin });
            (entry.key.as_str(), value)
        })
        .collect();
    format!("{}\n", json!(shown))
}

fn table(entries: &[Entry], origins: Option<&Files>) -> String {
    let paint = Paint::of(&io::stdout());
    let wide = |text: fn(&Entry) -> &str| {
        let lengths = entries.iter().map(|entry| text(entry).chars().count());
        lengths.max().unwrap_or_default()
    };
    let (keys, values) = (wide(|entry| &entry.key), wide(value));
    let mut text = String::new();
    for entry in entries {
        let _ = write!(text, "{:keys$}  ", harmless(&entry.key));
        let Some(files) = origins else {
            let _ = writeln!(text, "{}", harmless(value(entry)));
            continue;
        };
        let from = match &entry.origin {
            Some(Origin { layer, line }) => format!("{}:{line}", files.of(*layer).display()),
            None => "default".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:values$}  {}",
            harmless(value(entry)),
            paint.dim(from)
        );
    }
    text
}

fn value(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or("-")
}
