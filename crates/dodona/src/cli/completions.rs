//! `dodona completions`.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  dodona completions bash > ~/.local/share/bash-completion/completions/dodona
  dodona completions zsh  > ~/.zfunc/_dodona
  dodona completions fish > ~/.config/fish/completions/dodona.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "dodona", &mut script);
        let mut out = io::stdout().lock();
        out.write_all(&script)
            .and_then(|()| out.flush())
            .map_err(|error| Failure::output(&error))
    }
}
