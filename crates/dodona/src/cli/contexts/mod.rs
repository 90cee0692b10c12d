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

/// Conversations: list, show, search, shorten, begin, close, fork, rewind, export and import them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Contexts {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the project's conversations, the latest first
    List {
        /// Also closed ones, and those of delegated tasks
        #[arg(long)]
        all: bool,
        /// Only those of this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Show what was said in a conversation, as far as a model still sees it
    Show {
        /// Which one
        #[arg(default_value = "default")]
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Begin a conversation and print its id
    New {
        /// A name for it
        name: Option<String>,
        /// How many tokens of it a model is shown at most, from 4000 to 128000
        #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(4_000..=128_000))]
        budget: u64,
        /// The agent that answers in it
        #[arg(long, value_name = "NAME", default_value = "oracle")]
        agent: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// End a conversation; it can still be read, exported and forked
    Close {
        /// Which one
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Shorten a conversation now: all but its last turns become a summary; the originals stay
    Compact {
        /// Which one
        #[arg(default_value = "default")]
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Keep a text word for word, however often a conversation is shortened
    Pin {
        /// The text
        text: String,
        /// It no longer needs to be kept
        #[arg(long)]
        release: bool,
        /// In which conversation
        #[arg(long, default_value = "default")]
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Remember a decision, a fact or a preference; later conversations find it too
    Remember {
        /// The thing, in a sentence
        text: String,
        /// What sort of thing it is
        #[arg(long, default_value = "decision")]
        kind: Kind,
        /// In which conversation
        #[arg(long, default_value = "default")]
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Find what was decided, remembered, pinned or said in the project's conversations
    Seek {
        /// A question, or words
        query: String,
        /// How many at most
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
        limit: u32,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Copy a conversation up to an exchange and print the copy's id
    Fork {
        /// Which one
        #[arg(default_value = "default")]
        context: String,
        /// The last exchange to copy; all of them without
        #[arg(long, value_name = "EXCHANGE")]
        at: Option<String>,
        /// A name for the copy
        #[arg(long)]
        name: Option<String>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Take back an exchange and everything after it; the originals stay in an export
    Rewind {
        /// The first exchange to take back
        exchange: String,
        /// Of which conversation
        #[arg(long, default_value = "default")]
        context: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Print a whole conversation as one JSON document
    Export {
        /// Which one
        #[arg(default_value = "default")]
        context: String,
        /// Everything, or one row of the data model's table `oracle_contexts`
        #[arg(long, default_value = "archive")]
        format: ExportFormat,
        /// On one line, for programs
        #[arg(long)]
        json: bool,
    },
    /// Make a conversation from an exported document and print its id
    Import {
        /// The file, or `-` for standard input
        file: PathBuf,
        /// A name for it, instead of the document's
        #[arg(long)]
        name: Option<String>,
        /// Print JSON for programs
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
