//! `dodona init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use dodona_proto::ExitKind;

use super::own_project;
use crate::config::{self, Layer};
use crate::failure::Failure;
use crate::home::Home;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona init                    settings for the project in the current directory
  dodona init --user             settings for everything you do";

/// Write a file of settings with every key as a comment
///
/// Without `--user` it is `.dodona/config.toml` in the current directory, which then is the root
/// of a project. A file that is there already is left alone. The project counts as your own: its
/// rules are in force as you save them, unless it already has files that you have not trusted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// Write your user settings instead of the project's
    #[arg(long)]
    user: bool,
}

impl Init {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        if self.user {
            let home = Home::find()?;
            home.create()?;
            return write(&home.config_file(), Layer::User);
        }

        let here = match &shell.project {
            Some(named) => named.clone(),
            None => std::env::current_dir().map_err(|error| {
                Failure::usage(format!("the current directory is gone: {error}"))
            })?,
        };
        // Written first: the file makes the directory the root of a project.
        write(&config::project_file(&here), Layer::Project)?;
        own_project::create_in(shell, None, || Ok(())).await
    }
}

fn write(file: &Path, layer: Layer) -> Result<(), Failure> {
    match write_new(file, &config::new_file(layer)) {
        Ok(()) => super::print(&format!("wrote {}\n", file.display())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("`{}` already exists; it was not changed", file.display());
            Err(Failure::usage(message))
        }
        Err(error) => {
            let message = format!("could not write `{}`: {error}", file.display());
            Err(Failure::new(ExitKind::Failed, message))
        }
    }
}

/// Writes a file that is not there yet.
fn write_new(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut created = OpenOptions::new().write(true).create_new(true).open(file)?;
    created.write_all(text.as_bytes())
}
