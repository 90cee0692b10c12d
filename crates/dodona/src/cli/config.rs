//! `dodona config`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::{self, Entry, Layer, Origin};
use crate::failure::Failure;
use crate::home::Home;
use crate::paint::{Paint, harmless};
use crate::project;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona config show                  what is in force here
  dodona config show --origin         and which file and line set it
  dodona config path                  which files are read";

/// Show the settings that are in force
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
        /// Tell which file and line set it
        #[arg(long)]
        origin: bool,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Tell which files are read, yours first
    Path {
        /// Print JSON for programs
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
    pub(crate) fn run(self, shell: &Shell) -> Result<(), Failure> {
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
        }
    }
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
