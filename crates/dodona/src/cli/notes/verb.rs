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
    /// Write a note; keep its frontmatter unless the text has its own
    Write {
        /// Path of the note, relative to the project
        path: String,
        #[command(flatten)]
        body: Body,
        /// A heading to add if the text starts without one
        #[arg(long)]
        title: Option<String>,
        /// Write only if the note has this version; `none` means that it must not exist
        #[arg(long, value_name = "VERSION")]
        if_version: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move or rename a note and update the links to it
    Move {
        /// Where the note is
        old_path: String,
        /// Where it shall be
        new_path: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a note to the trash
    Delete {
        /// Path of the note, relative to the project
        path: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write an `index.md` that lists the notes of a folder
    Index {
        /// The folder; `.` for the whole vault
        folder: String,
        /// The heading of a new index
        #[arg(long)]
        title: Option<String>,
        /// Include the beginning of each note
        #[arg(long)]
        summaries: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List changes to one note or to all notes, newest first
    History {
        /// The note; one that is gone has a history, too
        path: Option<String>,
        /// Only changes made by this query
        #[arg(long, conflicts_with = "path")]
        query: Option<String>,
        /// Maximum number of changes
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the differences between two versions of a note
    Diff {
        /// Path of the note, relative to the project
        path: String,
        /// The older version [default: the previous one]
        #[arg(long, value_name = "VERSION")]
        from: Option<String>,
        /// The newer version [default: the current one]
        #[arg(long, value_name = "VERSION")]
        to: Option<String>,
    },
    /// Undo the newest change of a note, one change, or all changes of a query
    #[command(group = clap::ArgGroup::new("what").required(true).args(["path", "query", "change"]))]
    Undo {
        /// The note whose newest change is taken back
        path: Option<String>,
        /// Restore this version of the note
        #[arg(long, requires = "path")]
        version: Option<String>,
        /// Undo all changes of this query in one step
        #[arg(long)]
        query: Option<String>,
        /// One change, by its number
        #[arg(long, value_name = "NUMBER")]
        change: Option<i64>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List deleted notes
    Trash {
        /// Maximum number of notes
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Print the result as JSON
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
