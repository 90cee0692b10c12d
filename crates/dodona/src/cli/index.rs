//! `dodona index`.

use std::time::Duration;

use clap::Args;
use dodona_proto::{ExitKind, ItemBody};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::live::Live;
use crate::session::{Ask, Session};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona index             bring the index of this project in step with its files
  dodona index --watch     and keep it so, until Ctrl-C
  dodona index --json";

/// Bring the search index of the project in step with its files
///
/// Questions do so themselves; this is for doing it beforehand, or for watching it happen. When it
/// is stopped, what it has done stays done, and the next time goes on from there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Index {
    /// Keep running and index changes as they happen
    #[arg(long)]
    watch: bool,

    /// Print the result as JSON; with `--watch` one object for each change
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
struct Summary {
    files: u64,
    notes: u64,
    changed: u64,
    removed: u64,
    commits: u64,
    skipped: u64,
}

/// A watch goes on until it is stopped.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Index {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let live = if self.json {
            Live::none()
        } else {
            Live::start()
        };
        let followed = tokio::select! {
            biased;
            followed = self.follow(&session, &live) => followed,
            // Stopping is how a watch ends.
            () = shell.interrupt.requested() => match self.watch {
                true => Ok(()),
                false => Err(shell.cancelled(None)),
            },
        };
        live.end();
        session.close().await;
        followed
    }

    async fn follow(&self, session: &Session, live: &Live) -> Result<(), Failure> {
        let mut ask = Ask::new("search.index", json!({ "watch": self.watch }));
        ask.timeout = self.watch.then_some(FOR_EVER);
        let mut items = session.open(ask).await?;
        let mut failure = None;
        let mut told = false;
        while let Some(next) = items.next().await? {
            for item in next {
                let Ok(item) = item.to_item() else { continue };
                match item.body {
                    ItemBody::Progress {
                        message,
                        percentage,
                    } => live.progress(item.plugin_path.as_str(), &message, percentage),
                    ItemBody::Data { data, .. } => {
                        if let Ok(summary) = serde_json::from_value(data) {
                            told = true;
                            self.tell(&summary, live)?;
                        }
                    }
                    ItemBody::Error {
                        error,
                        code,
                        recoverable: false,
                        hint,
                    } => failure = Some(Failure::item(&code, error, hint)),
                    _ => {}
                }
            }
        }
        match (failure, told) {
            (Some(failure), _) => Err(failure),
            (None, true) => Ok(()),
            (None, false) => {
                let message = "the index was not brought in step";
                Err(Failure::new(ExitKind::Failed, message))
            }
        }
    }

    fn tell(&self, summary: &Summary, live: &Live) -> Result<(), Failure> {
        let text = match self.json {
            true => json!(summary).to_string() + "\n",
            false => format!("{}\n", line(summary)),
        };
        live.aside(|| super::print(&text))?;
        if self.watch {
            live.waiting("watching for changes; Ctrl-C ends it");
        }
        Ok(())
    }
}

fn line(summary: &Summary) -> String {
    let Summary {
        files,
        notes,
        changed,
        removed,
        commits,
        skipped,
    } = summary;
    let mut parts = vec![counted(*files, "file"), counted(*notes, "note")];
    parts.push(format!("{changed} changed"));
    parts.push(format!("{removed} removed"));
    if *commits > 0 {
        parts.push(counted(*commits, "commit"));
    }
    parts.push(format!("{skipped} skipped"));
    parts.join(" · ")
}

fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
