//! `dodona rules new`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use dodona_proto::{ExitKind, RULE_TRIGGERS};
use dodona_rules::draft::draft;
use serde_json::json;

use super::{Form, near};
use crate::cli::own_project;
use crate::failure::Failure;
use crate::home::Home;
use crate::project;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona rules new no-main-writes --trigger on_tool_call
  dodona rules new be-brief --user                          for all projects";

/// Create a rule file with comments and a test
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct New {
    /// The id in kebab-case, also the name of the file
    id: String,

    /// The trigger
    #[arg(long, value_name = "TRIGGER", default_value = "on_turn_start", value_parser = RULE_TRIGGERS)]
    trigger: String,

    /// Create it among your own rules, which apply to all projects
    #[arg(long)]
    user: bool,

    #[command(flatten)]
    form: Form,
}

impl New {
    pub(super) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(kebab) {
            let message = format!("invalid rule id `{}`", self.id);
            return Err(
                Failure::usage(message).hint("use a-z, 0-9 and `-`, as in `no-main-writes`")
            );
        }
        let name = format!("{}.toml", self.id);
        let path = self.directory(shell)?.join(&name);
        let create = || write(&path, &draft(&self.id, &self.trigger));
        match self.user {
            true => create()?,
            false => {
                let file = format!("rules/{name}");
                own_project::create_in(shell, Some(&file), create).await?;
            }
        }
        let shown = path.display().to_string();
        let told = json!({ "rule": self.id, "path": shown });
        let text = self.form.text(&told, |_, paint| {
            let test = paint.code(format!("dodona rules test {}", self.id));
            let backtest = paint.code("dodona rules backtest");
            format!(
                "created {}\n  {test}   run its tests\n  {backtest}   see what it would have done\n",
                near(&shown)
            )
        });
        super::super::print(&text)
    }

    fn directory(&self, shell: &Shell) -> Result<PathBuf, Failure> {
        if self.user {
            let home = Home::find()?;
            home.create()?;
            return Ok(home.config.join("rules"));
        }
        let root = project::root(shell.project.as_deref())?;
        let root = root.ok_or_else(|| {
            Failure::usage("no project found here")
                .hint("run `dodona init`, or write a rule of your own with `--user`")
        })?;
        Ok(root.join(".dodona/rules"))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("could not create `{}`: {error}", path.display());
        Failure::new(ExitKind::Storage, message)
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!("`{}` already exists", path.display());
            Failure::usage(message).hint("choose another id, or remove it")
        }
        _ => failed(error),
    })?;
    file.write_all(text.as_bytes()).map_err(failed)
}
