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
use crate::layout;
use crate::paint::{Paint, harmless};
use crate::quantity;
use crate::session::Session;
use crate::shell::Shell;
use crate::table::{self, Table};

const EXAMPLES: &str = "\
Examples:
  dodona threads push auth-rework --type decision --body \"No refresh tokens: revocation needs a shared store.\"
  dodona threads read auth-rework
  dodona threads seek \"why no refresh tokens\"";

/// Record and search thoughts and decisions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Threads {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List threads, most recent entry first
    List {
        /// Only threads with this status
        #[arg(long, default_value = "active", value_parser = ["active", "archived", "all"])]
        status: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the newest entries of a thread, oldest first
    Read {
        /// The thread
        thread: String,
        /// Maximum number of entries
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        limit: u32,
        /// Only entries before this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Append an entry to a thread; the first entry creates the thread
    Push {
        /// The thread, such as `auth-rework`
        thread: String,
        #[command(flatten)]
        body: Body,
        /// The kind of entry
        #[arg(long = "type", value_name = "TYPE", default_value = "thought", value_parser = ["thought", "decision", "research", "insight"])]
        entry_type: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search entries, best match first
    Seek {
        /// A question or keywords
        query: String,
        /// Maximum number of passages
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Archive a thread: it can be read and found, but not extended
    Archive {
        /// The thread
        thread: String,
        /// Reopen an archived thread
        #[arg(long)]
        reopen: bool,
        /// Print the result as JSON
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
    let width = layout::width(&io::stdout());
    let mut table =
        Table::new(&["THREAD", "STATUS", "ENTRIES", "LAST", "LAST ENTRY"]).align_right(&[2]);
    for thread in threads {
        table.row([
            table::bold(&thread.thread_id),
            if thread.archived { "archived" } else { "open" }.into(),
            thread.entries.to_string().into(),
            quantity::show_moment(thread.latest, width).into(),
            table::dim(&thread.last),
        ]);
    }
    table.render(paint, width)
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
