//! What a command knows about the shell it was started from.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::home::Home;
use crate::interrupt::Interrupt;
use crate::project;
use crate::session::Session;
use dodona_proto::ExitKind;

/// The user's side of a command.
pub(crate) struct Shell {
    /// The project the user named.
    pub(crate) project: Option<PathBuf>,
    /// Whether the user wants it to end.
    pub(crate) interrupt: Interrupt,
}

impl Shell {
    /// A session on the home that the environment names.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        let home = Home::find()?;
        let project = project::root(self.project.as_deref())?;
        tokio::select! {
            biased;
            session = Session::start(&home, project.as_deref()) => session,
            () = self.interrupt.requested() => Err(Failure::Told(ExitKind::Cancelled)),
        }
    }
}
