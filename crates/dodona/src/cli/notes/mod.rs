//! `dodona notes`.

mod change;
mod past;
mod verb;

use std::fmt::Write as _;
use std::io;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{part, show, tell};
use super::search;
use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, harmless};
use crate::session::Session;
use crate::shell::Shell;
use crate::table::{self, Table};
pub(super) use change::Body;
use verb::Verb;

const EXAMPLES: &str = "\
Examples:
  dodona notes list docs
  dodona notes search \"why sqlite\"
  dodona notes backlinks docs/concepts.md
  dodona notes links --broken
  dodona notes write ideas/next.md --body \"Try it with threads.\"
  dodona notes move ideas/next.md plan/threads.md
  dodona notes history plan/threads.md
  dodona notes undo plan/threads.md";

/// List, search, read, write, move and restore notes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Notes {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List notes, all or those below a folder
    List {
        /// The folder
        folder: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a note
    Read {
        /// Path of the note, relative to the project
        path: String,
        /// A version from `dodona notes history`
        #[arg(long)]
        version: Option<String>,
    },
    /// Search notes, best match first
    Search {
        /// A question or keywords
        query: String,
        /// Maximum number of passages
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the links to a note
    Backlinks {
        /// Path of the note, relative to the project
        path: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the links between notes
    Links {
        /// Only broken links
        #[arg(long)]
        broken: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List tags with their notes
    Tags {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    #[command(flatten)]
    Change(Verb),
}

#[derive(Serialize, Deserialize)]
struct NoteRef {
    path: String,
    title: String,
}

#[derive(Serialize, Deserialize)]
struct WrittenLink {
    path: String,
    line: u32,
    target: String,
}

#[derive(Serialize, Deserialize)]
struct Edge {
    from: String,
    to: String,
}

#[derive(Deserialize)]
struct Graph {
    edges: Vec<Edge>,
    unresolved: Vec<WrittenLink>,
}

#[derive(Serialize, Deserialize)]
struct Tag {
    tag: String,
    notes: Vec<String>,
}

impl Notes {
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
            Self::List { folder, json } => {
                let params = json!({ "folder": folder });
                let notes: Vec<NoteRef> = part(session, "vault.list", params, "notes").await?;
                show(json, &notes, || list(&notes, paint))
            }
            Self::Read { path, version } => {
                let params = json!({ "path": path, "version": version });
                let note: Value = session.ask("vault.read", params).await?;
                let text = note["text"].as_str().unwrap_or_default();
                format!("{}\n", harmless(text))
            }
            Self::Search { query, limit, json } => {
                let params = json!({ "query": query, "limit": limit });
                let found = session.ask("vault.search", params).await?;
                search::show(found, json)
            }
            Self::Backlinks { path, json } => {
                let params = json!({ "path": path });
                let links: Vec<WrittenLink> =
                    part(session, "vault.backlinks", params, "backlinks").await?;
                show(json, &links, || written(&links, paint))
            }
            Self::Links { broken, json } => {
                let graph: Graph = session.ask("vault.graph", json!({})).await?;
                match broken {
                    true => show(json, &graph.unresolved, || {
                        written(&graph.unresolved, paint)
                    }),
                    false => show(json, &graph.edges, || edges(&graph.edges)),
                }
            }
            Self::Tags { json } => {
                let tags: Vec<Tag> = part(session, "vault.tags", json!({}), "tags").await?;
                show(json, &tags, || tagged(&tags, paint))
            }
            Self::Change(verb) => verb.on(session, paint).await?,
        })
    }
}

fn list(notes: &[NoteRef], paint: Paint) -> String {
    if notes.is_empty() {
        return "no notes\n".to_owned();
    }
    let mut table = Table::new(&["PATH", "TITLE"]);
    for note in notes {
        table.row([note.path.as_str().into(), table::dim(&note.title)]);
    }
    table.render(paint, layout::width(&io::stdout()))
}

fn written(links: &[WrittenLink], paint: Paint) -> String {
    if links.is_empty() {
        return "no links\n".to_owned();
    }
    let mut text = String::new();
    for link in links {
        let place = format!("{}:{}", harmless(&link.path), link.line);
        let _ = writeln!(text, "{}  {}", paint.bold(place), harmless(&link.target));
    }
    text
}

fn edges(edges: &[Edge]) -> String {
    if edges.is_empty() {
        return "no links\n".to_owned();
    }
    let line = |edge: &Edge| format!("{} → {}\n", harmless(&edge.from), harmless(&edge.to));
    edges.iter().map(line).collect()
}

fn tagged(tags: &[Tag], paint: Paint) -> String {
    if tags.is_empty() {
        return "no tags\n".to_owned();
    }
    let mut text = String::new();
    for Tag { tag, notes } in tags {
        let _ = writeln!(text, "{}", paint.bold(format!("#{}", harmless(tag))));
        for note in notes {
            let _ = writeln!(text, "    {}", harmless(note));
        }
    }
    text
}
