//! The verbs that change notes, and those that tell what was changed.

use clap::Subcommand;
use serde_json::json;

use super::change::{Body, change};
use super::past;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Write a note; its frontmatter is kept unless the text brings its own
    Write {
        /// The note, below the project's root
        path: String,
        #[command(flatten)]
        body: Body,
        /// A heading, where the text begins with none
        #[arg(long)]
        title: Option<String>,
        /// Only if the note is this version; `none` if there must be no note yet
        #[arg(long, value_name = "VERSION")]
        if_version: Option<String>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Move or rename a note; links go on leading where they did
    Move {
        /// Where the note is
        old_path: String,
        /// Where it shall be
        new_path: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Delete a note; it stays in the trash
    Delete {
        /// The note, below the project's root
        path: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Write a list of the notes of a folder, as its `index.md`
    Index {
        /// The folder; `.` for the whole vault
        folder: String,
        /// The heading of a new index
        #[arg(long)]
        title: Option<String>,
        /// Show the beginning of each note, too
        #[arg(long)]
        summaries: bool,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Tell what happened to a note, or to all of them, newest first
    History {
        /// The note; one that is gone has a history, too
        path: Option<String>,
        /// Only what was changed in this query
        #[arg(long, conflicts_with = "path")]
        query: Option<String>,
        /// How many changes at most
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Show what is other between two versions of a note
    Diff {
        /// The note, below the project's root
        path: String,
        /// A version of it [default: the one before]
        #[arg(long, value_name = "VERSION")]
        from: Option<String>,
        /// Another version [default: what is there now]
        #[arg(long, value_name = "VERSION")]
        to: Option<String>,
    },
    /// Take back the newest change of a note, one change, or all of a query
    #[command(group = clap::ArgGroup::new("what").required(true).args(["path", "query", "change"]))]
    Undo {
        /// The note whose newest change is taken back
        path: Option<String>,
        /// Bring back this version of the note instead
        #[arg(long, requires = "path")]
        version: Option<String>,
        /// Everything that was changed in this query, as one step
        #[arg(long)]
        query: Option<String>,
        /// One change, by its number
        #[arg(long, value_name = "NUMBER")]
        change: Option<i64>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// List the notes that are gone
    Trash {
        /// How many notes at most
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

impl Verb {
    pub(super) async fn on(self, session: &Session, paint: Paint) -> Result<String, Failure> {
        match self {
            Self::Write {
                path,
                body,
                title,
                if_version,
                json,
            } => {
                let params = json!({ "path": path, "body": body.read()?, "title": title, "if_version": if_version });
                change(session, "vault.write", params, json).await
            }
            Self::Move {
                old_path,
                new_path,
                json,
            } => {
                let params = json!({ "old_path": old_path, "new_path": new_path });
                change(session, "vault.move", params, json).await
            }
            Self::Delete { path, json } => {
                change(session, "vault.delete", json!({ "path": path }), json).await
            }
            Self::Index {
                folder,
                title,
                summaries,
                json,
            } => {
                let params =
                    json!({ "folder": folder, "title": title, "include_summaries": summaries });
                change(session, "vault.create_index", params, json).await
            }
            Self::Undo {
                path,
                version,
                query,
                change: number,
                json,
            } => {
                let params =
                    json!({ "path": path, "version": version, "query": query, "change": number });
                change(session, "vault.undo", params, json).await
            }
            Self::History {
                path: Some(path),
                limit,
                json,
                ..
            } => past::of_note(session, &path, limit, json, paint).await,
            Self::History {
                query, limit, json, ..
            } => past::of_all(session, query, limit, json, paint).await,
            Self::Diff { path, from, to } => {
                let params = json!({ "path": path, "from": from, "to": to });
                past::diff(session, params, paint).await
            }
            Self::Trash { limit, json } => past::trash(session, limit, json, paint).await,
        }
    }
}
