//! What commands share that ask a method and show its answer.

use std::io;

use clap::Args;
use dodona_proto::ExitKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::paint::Paint;
use crate::session::Session;
use crate::shell::Shell;

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Form {
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Form {
    /// The answer as JSON, or in words.
    pub(super) fn text<T: Serialize>(
        self,
        answer: &T,
        words: impl FnOnce(&T, Paint) -> String,
    ) -> String {
        show(self.json, answer, || {
            words(answer, Paint::of(&io::stdout()))
        })
    }
}

/// An answer as JSON, or in words.
pub(super) fn show<T: Serialize>(
    as_json: bool,
    answer: &T,
    words: impl FnOnce() -> String,
) -> String {
    match as_json {
        true => format!("{}\n", json!(answer)),
        false => words(),
    }
}

/// What a command prints, and how it ends if not well.
pub(super) struct Done {
    pub(super) text: String,
    pub(super) failure: Option<Failure>,
}

impl Done {
    pub(super) fn print(self) -> Result<(), Failure> {
        super::print(&self.text)?;
        self.failure.map_or(Ok(()), Err)
    }
}

impl From<String> for Done {
    fn from(text: String) -> Self {
        let failure = None;
        Self { text, failure }
    }
}

/// What a method answers.
pub(super) async fn answer<T: DeserializeOwned>(
    session: &Session,
    method: &str,
    params: Value,
) -> Result<T, Failure> {
    Ok(session.ask(method, params).await?)
}

/// One field of what a method answers.
pub(super) async fn part<T: DeserializeOwned>(
    session: &Session,
    method: &str,
    params: Value,
    field: &str,
) -> Result<T, Failure> {
    let mut answer: Value = session.ask(method, params).await?;
    serde_json::from_value(answer[field].take()).map_err(|error| {
        let message = format!("could not read what `{method}` answered: {error}");
        Failure::new(ExitKind::Failed, message)
    })
}

/// Prints what somebody makes of a session, which ends with it. An interrupt ends both.
pub(super) async fn tell(
    shell: &Shell,
    session: Session,
    work: impl AsyncFnOnce(&Session) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let told = tokio::select! {
        biased;
        told = work(&session) => told,
        () = shell.interrupt.requested() => Err(shell.cancelled(None)),
    };
    session.close().await;
    super::print(&told?)
}
