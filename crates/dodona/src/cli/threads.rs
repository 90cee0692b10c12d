//! `dodona threads`.

use std::fmt::Write as _;
use std::io;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{part, show, tell};
use super::notes::Body;
use super::search;
use crate::failure::Failure;
use crate::paint::{Paint, harmless};
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona threads push auth-rework --type decision --body \"No refresh tokens: revocation needs a shared store.\"
  dodona threads read auth-rework
  dodona threads seek \"why no refresh tokens\"";

/// Keep what was thought, decided and found out, and find it again
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Threads {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the threads, the one with the newest entry first
    List {
        /// Which threads
        #[arg(long, default_value = "active", value_parser = ["active", "archived", "all"])]
        status: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Read the newest entries of a thread, oldest first
    Read {
        /// The thread
        thread: String,
        /// How many entries at most
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        limit: u32,
        /// Only entries before this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Write an entry at the end of a thread; the first one makes it
    Push {
        /// The thread, such as `auth-rework`
        thread: String,
        #[command(flatten)]
        body: Body,
        /// What it is
        #[arg(long = "type", value_name = "TYPE", default_value = "thought", value_parser = ["thought", "decision", "research", "insight"])]
        entry_type: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Find the entries that match, best first
    Seek {
        /// A question, or words
        query: String,
        /// How many passages at most
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
        limit: u32,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Put a thread away: it is still read and found, and takes nothing more
    Archive {
        /// The thread
        thread: String,
        /// Bring it back instead
        #[arg(long)]
        reopen: bool,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct ThreadRef {
    thread_id: String,
    archived: bool,
    entries: u64,
    began: Timestamp,
    latest: Timestamp,
    last: String,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    source: Value,
    entry: u64,
    entry_type: String,
    author: String,
    user: String,
    at: Timestamp,
    query: Option<String>,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Pushed {
    thread_id: String,
    entry: u64,
    author: String,
    at: Timestamp,
}

impl Threads {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let paint = Paint::of(&io::stdout());
        tell(shell, session, async |session| {
            self.command.on(session, paint).await
        })
        .await
    }
}

impl Command {
    async fn on(self, session: &Session, paint: Paint) -> Result<String, Failure> {
        Ok(match self {
            Self::List { status, json } => {
                let params = json!({ "status": status });
                let threads: Vec<ThreadRef> =
                    part(session, "thread.list", params, "threads").await?;
                show(json, &threads, || list(&threads, paint))
            }
            Self::Read {
                thread,
                limit,
                before,
                json,
            } => {
                let params = json!({ "thread_id": thread, "limit": limit, "before": before });
                let entries: Vec<Entry> = part(session, "thread.read", params, "entries").await?;
                show(json, &entries, || read(&entries, paint))
            }
            Self::Push {
                thread,
                body,
                entry_type,
                json,
            } => {
                let params = json!({ "thread_id": thread, "content": body.read()?, "entry_type": entry_type });
                let pushed: Pushed = session.ask("thread.push", params).await?;
                show(json, &json!(pushed), || {
                    format!(
                        "entry {} of {}\n",
                        pushed.entry,
                        harmless(&pushed.thread_id)
                    )
                })
            }
            Self::Seek { query, limit, json } => {
                let params = json!({ "query": query, "limit": limit });
                let found = session.ask("thread.seek", params).await?;
                search::show(found, json)
            }
            Self::Archive {
                thread,
                reopen,
                json,
            } => {
                let params = json!({ "thread_id": thread, "archived": !reopen });
                let threads: Vec<ThreadRef> =
                    part(session, "thread.archive", params, "threads").await?;
                show(json, &threads, || list(&threads, paint))
            }
        })
    }
}

fn list(threads: &[ThreadRef], paint: Paint) -> String {
    if threads.is_empty() {
        return "no threads\n".to_owned();
    }
    let mut text = String::new();
    for thread in threads {
        let away = if thread.archived { " (archived)" } else { "" };
        let _ = writeln!(
            text,
            "{}{away}  {}  {}",
            paint.bold(harmless(&thread.thread_id)),
            counted(thread.entries),
            paint.dim(thread.latest.strftime("%Y-%m-%d %H:%M")),
        );
        let _ = writeln!(text, "    {}", harmless(&thread.last));
    }
    text
}

fn counted(entries: u64) -> String {
    match entries {
        1 => "1 entry".to_owned(),
        entries => format!("{entries} entries"),
    }
}

fn read(entries: &[Entry], paint: Paint) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(
            text,
            "{}  {} by {}  {}",
            paint.bold(format!("#{}", entry.entry)),
            entry.entry_type,
            harmless(&entry.author),
            paint.dim(entry.at.strftime("%Y-%m-%d %H:%M")),
        );
        for line in entry.text.lines() {
            let _ = writeln!(text, "    {}", harmless(line));
        }
    }
    text
}
