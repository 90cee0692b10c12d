//! How a command ends badly: what the user is told, and with which exit code.
//!
//! Every error of this binary is turned into a [`Failure`] here and nowhere else.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use dodona_hub::StartError;
use dodona_proto::{CallError, ErrorCode, ExitKind};
use dodona_store::backup::BackupError;

use crate::config::ConfigError;
use crate::home::{self, HomeError};
use crate::owner::OwnerError;
use crate::paint::{Paint, harmless};
use crate::schema::NewerHome;

/// A command that did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// To be told.
    Said {
        /// What went wrong.
        message: String,
        /// The next thing to try.
        hint: Option<String>,
        /// The exit code.
        exit: ExitKind,
    },
    /// To be told in a form that is ready: it shows an excerpt.
    Drawn {
        /// The whole text.
        text: String,
        /// The exit code.
        exit: ExitKind,
    },
    /// The user was told already.
    Told(ExitKind),
    /// Whoever read the output has seen enough, which is not an error.
    Unread,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(exit: ExitKind, message: impl Into<String>) -> Self {
        Self::Said {
            message: message.into(),
            hint: None,
            exit,
        }
    }

    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitKind::Usage, message)
    }

    /// What an item of a call says.
    pub(crate) fn item(code: &ErrorCode, error: String, hint: Option<String>) -> Self {
        Self::Said {
            message: error,
            hint,
            exit: code.exit(),
        }
    }

    /// Adds the next thing to try.
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Said { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// The output could not be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::new(
                ExitKind::Storage,
                format!("could not write the output: {error}"),
            ),
        }
    }

    /// The exit code's kind.
    pub(crate) fn exit(&self) -> Option<ExitKind> {
        match self {
            Self::Said { exit, .. } | Self::Drawn { exit, .. } | Self::Told(exit) => Some(*exit),
            Self::Unread => None,
        }
    }

    /// Tells the user, and gives the exit code.
    pub(crate) fn tell(self) -> ExitCode {
        let stderr = io::stderr();
        let paint = Paint::of(&stderr);
        let (text, exit) = match self {
            Self::Said {
                message,
                hint,
                exit,
            } => {
                let mut text = format!("{} {}", paint.bad("error:"), harmless(&message));
                if let Some(hint) = hint {
                    let hint = harmless(&hint).into_owned();
                    text = format!("{text}\n{} {hint}", paint.code("hint:"));
                }
                (Some(text), exit)
            }
            Self::Drawn { text, exit } => (Some(text), exit),
            Self::Told(exit) => (None, exit),
            Self::Unread => return ExitCode::SUCCESS,
        };
        if let Some(text) = text {
            use io::Write;
            // If not even this can be told, the exit code remains.
            let _ = writeln!(stderr.lock(), "{text}");
        }
        ExitCode::from(exit as u8)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let hint = error.hint_text().map(str::to_owned);
        Self::Said {
            exit: error.code.exit(),
            message: error.message,
            hint,
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        let exit = match &error {
            HomeError::Create { .. } => ExitKind::Storage,
            _ => ExitKind::Usage,
        };
        let hint = format!("set {} to a directory you can write to", home::VARIABLE);
        Self::new(exit, in_full(&error)).hint(hint)
    }
}

impl From<OwnerError> for Failure {
    fn from(error: OwnerError) -> Self {
        let hint = match &error {
            OwnerError::Held { note: Some(note) } => format!(
                "wait until it is done, end it with `kill {}`, or set {} to another directory",
                note.pid,
                home::VARIABLE
            ),
            OwnerError::Held { note: None } => format!(
                "wait until it is done, or set {} to another directory",
                home::VARIABLE
            ),
            OwnerError::Lock { .. } => "run `dodona doctor` to see what is wrong".to_owned(),
        };
        Self::new(ErrorCode::Storage.exit(), in_full(&error)).hint(hint)
    }
}

impl From<NewerHome> for Failure {
    fn from(error: NewerHome) -> Self {
        Self::new(ErrorCode::Storage.exit(), error.to_string()).hint(NewerHome::HINT)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::new(ErrorCode::Storage.exit(), in_full(&error))
            .hint("run `dodona doctor` to see what is wrong")
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let exit = match &error {
            BackupError::NotABackup { .. } | BackupError::Exists { .. } => ExitKind::Usage,
            _ => ExitKind::Storage,
        };
        Self::new(exit, in_full(&error))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Read { path, source } => Self::new(
                ExitKind::Storage,
                format!("could not read `{}`: {source}", path.display()),
            ),
            ConfigError::Wrong { drawn, .. } => Self::Drawn {
                text: drawn,
                exit: ExitKind::Usage,
            },
        }
    }
}

/// An error with its sources. Two in a row that say the same are told once.
pub(crate) fn in_full(error: &dyn Error) -> String {
    let errors = std::iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<String> = errors.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}
