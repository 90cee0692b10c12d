//! Child processes: started under a guard, spoken to in lines, and gone with everything below them.
//!
//! A `guard` is this program again: it ends everything below it when the child ends, when we close its
//! input, or when we are dead. A `process` is a child under its guard; `lines` is what goes through its
//! pipes; `ended` says why it is over.

mod backoff;
mod ended;
mod guard;
mod lines;
mod process;
mod secret;
mod span;

use std::path::{Path, PathBuf};

pub(crate) use backoff::pause_after;
pub(crate) use ended::Ended;
pub use guard::run as run_guard;
pub(crate) use lines::{LineReader, LineWriter};
pub use process::GuardCommand;
pub(crate) use process::{Keeper, Process, Start, with_last_words};
pub(crate) use secret::Secret;
pub(crate) use span::span;

/// A program, and what it is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Where it starts; without one in the plugin's data directory.
    pub(crate) directory: Option<PathBuf>,
}

impl Program {
    /// A program that a manifest names: one of the plugin's directory as `./server`, others are found
    /// on the path. It starts in the directory, or in a folder of it.
    pub(crate) fn in_directory(
        directory: &Path,
        command: &str,
        args: &[String],
        cwd: Option<&str>,
    ) -> Self {
        let is_own = command.starts_with("./") || command.starts_with(".\\");
        let program: PathBuf = match is_own {
            true => directory.join(command),
            false => command.into(),
        };
        Self {
            program: program.to_string_lossy().into_owned(),
            args: args.to_vec(),
            directory: Some(directory.join(cwd.unwrap_or("."))),
        }
    }
}
