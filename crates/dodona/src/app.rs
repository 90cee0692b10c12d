//! The program as a value: what a `main` creates and runs.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use dodona_plugin::Plugin;

use crate::{cli, plugins, privacy};

/// The program: its commands, its server, the built-in plugins and those that are added.
///
/// An added plugin is treated like a built-in one: the roster can disable and restrict it
/// (`module = "builtin:NAME"`), it is granted every capability, and it appears on every surface.
#[derive(Default)]
pub struct App {
    plugins: Vec<Arc<dyn Plugin>>,
}

impl App {
    /// The program with its built-in plugins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin. Its name must differ from those of the other plugins; otherwise the program
    /// reports the name and exits.
    #[must_use]
    pub fn plugin(mut self, plugin: impl Plugin) -> Self {
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Reads the command line of the process, runs the command and returns the exit code.
    ///
    /// Call it first in `main`, before any thread is started: it sets the file mode mask of the
    /// process. The same program is also started as the guard of child processes, which this
    /// recognises by its arguments. Call it once per process.
    pub fn run(self) -> ExitCode {
        self.run_from(std::env::args_os())
    }

    /// As [`run`](Self::run) with a command line from elsewhere; the first word is the program's name.
    pub fn run_from(self, words: impl IntoIterator<Item = OsString>) -> ExitCode {
        let words: Vec<OsString> = words.into_iter().collect();
        if let Some((mask, command)) = plugins::guarded_command(&words) {
            privacy::set_mask(mask);
            return dodona_extern::run_guard(command.iter().cloned());
        }
        privacy::keep_files_private();
        plugins::add(self.plugins);
        let cli = cli::Cli::parse_arguments(words);
        match cli.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.tell(),
        }
    }
}
