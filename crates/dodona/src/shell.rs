//! What a command knows about the shell it was started from.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_hub::Approvers;
use dodona_proto::ExitKind;

use crate::failure::Failure;
use crate::home::Home;
use crate::interrupt::Interrupt;
use crate::paint::Paint;
use crate::project;
use crate::quantity;
use crate::session::Session;
use crate::trust_notice;

/// The user's side of a command.
pub(crate) struct Shell {
    /// The project the user named.
    pub(crate) project: Option<PathBuf>,
    /// Whether `--project` was given, with or without a directory.
    pub(crate) names_project: bool,
    /// Whether the user wants it to end.
    pub(crate) interrupt: Interrupt,
}

impl Shell {
    /// A session on the home that the environment names.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        self.session_with(Approvers::None).await
    }

    /// The same, but gives up after `patience` where the server does not respond.
    pub(crate) async fn session_within(
        &self,
        patience: Option<Duration>,
    ) -> Result<Session, Failure> {
        let home = Home::find()?;
        let project = project::root(self.project.as_deref())?;
        let nobody = Approvers::None;
        tokio::select! {
            biased;
            session = Session::start_within(&home, project.as_deref(), nobody, patience) => session,
            () = self.interrupt.requested() => Err(self.cancelled(None)),
        }
    }

    /// The same for a command that may be able to ask somebody by itself.
    async fn session_with(&self, approvers: Approvers) -> Result<Session, Failure> {
        let home = Home::find()?;
        let project = project::root(self.project.as_deref())?;
        tokio::select! {
            biased;
            session = Session::start(&home, project.as_deref(), approvers) => session,
            () = self.interrupt.requested() => Err(self.cancelled(None)),
        }
    }

    /// A session about the project, which is registered if it is not yet: the current directory
    /// where nothing marks another.
    pub(crate) async fn session_in_project(&self) -> Result<Session, Failure> {
        self.session_to_ask(Approvers::None).await
    }

    /// The same for a command that may be able to ask somebody by itself.
    pub(crate) async fn session_to_ask(&self, approvers: Approvers) -> Result<Session, Failure> {
        let root = self.root_or_here()?;
        let session = self.enter(approvers, &root).await?;
        trust_notice::print_once(&session, &root).await;
        Ok(session)
    }

    /// A session about the project for a command that is itself about trust: no notice is printed.
    pub(crate) async fn quiet_session_in_project(&self) -> Result<Session, Failure> {
        self.enter(Approvers::None, &self.root_or_here()?).await
    }

    fn root_or_here(&self) -> Result<PathBuf, Failure> {
        match project::root(self.project.as_deref())? {
            Some(root) => Ok(root),
            None => std::env::current_dir()
                .map_err(|error| Failure::usage(format!("the current directory is gone: {error}"))),
        }
    }

    async fn enter(&self, approvers: Approvers, root: &Path) -> Result<Session, Failure> {
        let mut session = self.session_with(approvers).await?;
        match session.enter(root).await {
            Ok(()) => Ok(session),
            Err(error) => {
                session.close().await;
                Err(error.into())
            }
        }
    }

    /// A session about the project here, which is registered if it is not yet; about none where
    /// nothing marks one.
    pub(crate) async fn session_in_project_if_any(&self) -> Result<Session, Failure> {
        match project::root(self.project.as_deref())? {
            Some(_) => self.session_in_project().await,
            None => self.session().await,
        }
    }

    /// Tells that the command was cancelled, and after what time if it had begun.
    pub(crate) fn cancelled(&self, after: Option<Duration>) -> Failure {
        let after = after.map(|time| format!(" · {}", quantity::show_elapsed(time)));
        let line = format!("cancelled{}", after.unwrap_or_default());
        tell(&Paint::of(&io::stderr()).dim(line).to_string());
        Failure::Told(ExitKind::Cancelled)
    }
}

/// Writes a line to standard error; if that is gone, nobody wants to know.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
