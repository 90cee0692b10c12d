//! `dodona contexts`.

mod list;
mod summary;
mod transcript;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use dodona_proto::ExitKind;
use serde_json::{Value, json};

use super::form::tell;
use super::search;
use crate::failure::Failure;
use crate::layout;
use crate::paint::Paint;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona contexts list
  dodona contexts show                        the default conversation
  dodona contexts new login --budget 32000
  dodona contexts compact                     fold all but the last turns into a summary
  dodona contexts pin \"Alice signs releases\"  keep it word for word
  dodona contexts remember \"We use JWT\"      a decision; later conversations find it too
  dodona contexts seek \"refresh tokens\"      what was decided and said about it, in any of them
  dodona contexts rewind 3fa9c2d4             take back from an exchange on
  dodona contexts fork --at 3fa9c2d4 --name other-way
  dodona contexts export login > login.json
  dodona contexts export login --format seed   one row of the data model's table
  dodona contexts import login.json

A conversation is named by its name, its id or the end of its id; an exchange by its id or the end
of it, as `dodona contexts show` prints them.";

/// The largest document that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// List, show, search, compact, fork, rewind, export and import conversations
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Contexts {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the conversations of the project, most recent first
    List {
        /// Include closed conversations and those of delegated tasks
        #[arg(long)]
        all: bool,
        /// Only conversations of this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the part of a conversation that the model still sees
    Show {
        /// Name or id
        #[arg(default_value = "default")]
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a conversation and print its id
    New {
        /// A name for it
        name: Option<String>,
        /// Token budget of the conversation, from 4000 to 128000
        #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(4_000..=128_000))]
        budget: u64,
        /// The agent that answers in it
        #[arg(long, value_name = "NAME", default_value = "oracle")]
        agent: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Close a conversation; it can still be read, exported and forked
    Close {
        /// Name or id
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Compact a conversation now: replace all but its last turns with a summary. The originals are kept
    Compact {
        /// Name or id
        #[arg(default_value = "default")]
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin a text, so that compaction keeps it word for word
    Pin {
        /// The text
        text: String,
        /// Unpin the text
        #[arg(long)]
        release: bool,
        /// The conversation, by name or id
        #[arg(long, default_value = "default")]
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remember a decision, a fact or a preference for this and later conversations
    Remember {
        /// The thing, in a sentence
        text: String,
        /// The kind of entry
        #[arg(long, default_value = "decision")]
        kind: Kind,
        /// The conversation, by name or id
        #[arg(long, default_value = "default")]
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the conversations of the project
    Seek {
        /// A question or keywords
        query: String,
        /// Maximum number of results
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy a conversation, whole or up to an exchange, and print the id of the copy
    Fork {
        /// Name or id
        #[arg(default_value = "default")]
        context: String,
        /// The last exchange to copy [default: all]
        #[arg(long, value_name = "EXCHANGE")]
        at: Option<String>,
        /// A name for the copy
        #[arg(long)]
        name: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an exchange and everything after it from a conversation; an export keeps the originals
    Rewind {
        /// The first exchange to take back
        exchange: String,
        /// The conversation, by name or id
        #[arg(long, default_value = "default")]
        context: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation as a JSON document
    Export {
        /// Name or id
        #[arg(default_value = "default")]
        context: String,
        /// The format: everything, or one row of the table `oracle_contexts`
        #[arg(long, default_value = "archive")]
        format: ExportFormat,
        /// Print on one line
        #[arg(long)]
        json: bool,
    },
    /// Import an exported conversation and print its id
    Import {
        /// The file, or `-` for standard input
        file: PathBuf,
        /// A name that replaces the one in the document
        #[arg(long)]
        name: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The form of a document.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    Archive,
    Seed,
}

impl ExportFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Seed => "seed",
        }
    }
}

/// What sort of thing is remembered.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Decision,
    Fact,
    Preference,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Fact => "fact",
            Self::Preference => "preference",
        }
    }
}

impl Contexts {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        tell(shell, session, async |session| {
            self.command.on(session).await
        })
        .await
    }
}

impl Command {
    async fn on(self, session: &Session) -> Result<String, Failure> {
        let (method, params) = self.request()?;
        let answer: Value = session.ask(method, params).await?;
        match self.json() {
            // What a list holds is the list.
            true if method == "agent.contexts" => Ok(format!("{}\n", answer["contexts"])),
            true if method == "agent.seek" => Ok(format!("{}\n", answer["passages"])),
            true => Ok(format!("{answer}\n")),
            false => self.text(answer),
        }
    }

    /// The method that does it, and what it is asked.
    fn request(&self) -> Result<(&'static str, Value), Failure> {
        Ok(match self {
            Self::List { all, agent, .. } => {
                let params = json!({ "all": all, "agent_id": agent });
                ("agent.contexts", params)
            }
            Self::Show { context, .. } => ("agent.show", json!({ "context_id": context })),
            Self::New {
                name,
                budget,
                agent,
                ..
            } => {
                let params = json!({ "name": name, "token_budget": budget, "agent_id": agent });
                ("agent.create", params)
            }
            Self::Close { context, .. } => ("agent.close", json!({ "context_id": context })),
            Self::Compact { context, .. } => ("agent.compact", json!({ "context_id": context })),
            Self::Pin {
                text,
                release,
                context,
                ..
            } => {
                // The default conversation is made if there is none.
                let context = Some(context).filter(|context| *context != "default");
                let params = json!({ "text": text, "release": release, "context_id": context });
                ("agent.pin", params)
            }
            Self::Remember {
                text,
                kind,
                context,
                ..
            } => {
                let context = Some(context).filter(|context| *context != "default");
                let kind = kind.as_str();
                let params = json!({ "kind": kind, "text": text, "context_id": context });
                ("agent.remember", params)
            }
            Self::Seek { query, limit, .. } => {
                ("agent.seek", json!({ "query": query, "limit": limit }))
            }
            Self::Fork {
                context, at, name, ..
            } => {
                let params = json!({ "context_id": context, "exchange_id": at, "name": name });
                ("agent.fork", params)
            }
            Self::Rewind {
                exchange, context, ..
            } => {
                let params = json!({ "context_id": context, "exchange_id": exchange });
                ("agent.rewind", params)
            }
            Self::Export {
                context, format, ..
            } => {
                let (raw, format) = (crate::paint::is_raw(), format.as_str());
                let params = json!({ "context_id": context, "raw": raw, "format": format });
                ("agent.export", params)
            }
            Self::Import { file, name, .. } => {
                let params = json!({ "document": document(file)?, "name": name });
                ("agent.import", params)
            }
        })
    }

    fn json(&self) -> bool {
        match self {
            Self::List { json, .. }
            | Self::Show { json, .. }
            | Self::New { json, .. }
            | Self::Close { json, .. }
            | Self::Compact { json, .. }
            | Self::Pin { json, .. }
            | Self::Remember { json, .. }
            | Self::Seek { json, .. }
            | Self::Fork { json, .. }
            | Self::Rewind { json, .. }
            | Self::Export { json, .. }
            | Self::Import { json, .. } => *json,
        }
    }

    fn text(&self, answer: Value) -> Result<String, Failure> {
        let stdout = io::stdout();
        let (paint, width) = (Paint::of(&stdout), layout::width(&stdout));
        Ok(match self {
            Self::List { .. } => list::table(&read(answer)?, paint, width),
            Self::Show { .. } => transcript::text(&read(answer)?, paint, width),
            // Alone on its line, so that it can be piped.
            Self::New { .. } | Self::Fork { .. } | Self::Import { .. } => {
                format!("{}\n", answer["context_id"].as_str().unwrap_or_default())
            }
            Self::Close { context, .. } => format!("closed {context}\n"),
            Self::Compact { .. } => summary::compacted(&read(answer)?),
            Self::Pin { .. } => summary::pinned(&read(answer)?),
            Self::Remember { .. } => match answer["added"].as_bool() {
                Some(true) => "remembered\n".to_owned(),
                _ => "it was remembered already\n".to_owned(),
            },
            Self::Seek { .. } => search::show(read(answer)?, false),
            Self::Rewind { .. } => match answer["exchanges"].as_u64() {
                Some(1) => "took back 1 exchange\n".to_owned(),
                count => format!("took back {} exchanges\n", count.unwrap_or_default()),
            },
            Self::Export { .. } => format!("{answer:#}\n"),
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        let message = format!("could not read what the server answered: {error}");
        Failure::new(ExitKind::Failed, message)
    })
}

/// The document in a file or on standard input.
fn document(file: &Path) -> Result<Value, Failure> {
    let shown = file.display();
    let unreadable =
        |error: io::Error| Failure::usage(format!("could not read `{shown}`: {error}"));
    let mut text = String::new();
    match file.as_os_str() == "-" {
        true => io::stdin()
            .lock()
            .take(LARGEST + 1)
            .read_to_string(&mut text),
        false => {
            fs::File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        }
    }
    .map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        return Err(Failure::usage(format!(
            "`{shown}` is larger than {LARGEST} bytes"
        )));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("`{shown}` is not JSON: {error}"))
            .hint("`dodona contexts export` writes what can be imported")
    })
}
