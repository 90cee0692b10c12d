//! `dodona search` and `dodona index`.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use dodona_proto::{ItemBody, Source};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::live::Live;
use crate::paint::{Paint, harmless};
use crate::session::{Ask, Session};
use crate::shell::Shell;

const SEARCH_EXAMPLES: &str = "\
Examples:
  dodona search \"journal recovery\"
  dodona search parseFrontmatter --kind code --limit 3
  dodona search \"why sqlite\" --json | jq -r '.[].source.path'";

/// Find the passages of the project that match, best first
#[derive(Debug, Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(crate) struct Search {
    /// A question, words or names
    query: String,

    /// How many passages at most
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    limit: u32,

    /// Only this kind: note, code or text; may be given several times
    #[arg(long, value_name = "KIND", value_parser = ["note", "code", "text"])]
    kind: Vec<String>,

    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
struct Passage {
    source: Source,
    heading: String,
    language: Option<String>,
    text: String,
    score: f32,
}

#[derive(Deserialize)]
struct Passages {
    passages: Vec<Passage>,
}

impl Search {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let params = json!({ "query": self.query, "limit": self.limit, "kinds": self.kind });
        let found = session.ask::<Passages>("search.query", params).await;
        session.close().await;
        let Passages { passages } = found?;
        let text = match self.json {
            true => json!(passages).to_string() + "\n",
            false => list(&passages, Paint::of(&io::stdout())),
        };
        super::print(&text)
    }
}

/// How many lines of a passage are shown.
const LINES: usize = 4;

fn list(passages: &[Passage], paint: Paint) -> String {
    if passages.is_empty() {
        return "nothing matches\n".to_owned();
    }
    let mut text = String::new();
    for Passage {
        source,
        text: passage,
        ..
    } in passages
    {
        let place = format!(
            "{}:{}-{}",
            harmless(&source.path),
            source.line_start,
            source.line_end
        );
        let title = source.title.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {}",
            paint.bold(place),
            paint.dim(harmless(title))
        );
        for line in passage
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(LINES)
        {
            let _ = writeln!(text, "    {}", harmless(line));
        }
    }
    text
}

const INDEX_EXAMPLES: &str = "\
Examples:
  dodona index             bring the index of this project in step with its files
  dodona index --json";

/// Bring the search index of the project in step with its files
#[derive(Debug, Args)]
#[command(after_help = INDEX_EXAMPLES)]
pub(crate) struct Index {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
struct Summary {
    files: u64,
    changed: u64,
    removed: u64,
    skipped: u64,
}

impl Index {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let live = if self.json {
            Live::none()
        } else {
            Live::start()
        };
        let summary = tokio::select! {
            biased;
            summary = follow(&session, &live) => summary,
            () = shell.interrupt.requested() => Err(shell.cancelled(None)),
        };
        live.end();
        session.close().await;
        let summary = summary?;
        let text = match self.json {
            true => json!(summary).to_string() + "\n",
            false => {
                let Summary {
                    files,
                    changed,
                    removed,
                    skipped,
                } = summary;
                format!(
                    "{files} files · {changed} changed · {removed} removed · {skipped} skipped\n"
                )
            }
        };
        super::print(&text)
    }
}

async fn follow(session: &Session, live: &Live) -> Result<Summary, Failure> {
    let mut items = session.open(Ask::new("search.index", json!({}))).await?;
    let mut summary = None;
    let mut failure = None;
    while let Some(next) = items.next().await? {
        for item in next {
            let Ok(item) = item.to_item() else { continue };
            match item.body {
                ItemBody::Progress {
                    message,
                    percentage,
                } => live.progress(item.plugin_path.as_str(), &message, percentage),
                ItemBody::Data { data, .. } => summary = serde_json::from_value(data).ok(),
                ItemBody::Error {
                    error,
                    code,
                    recoverable: false,
                } => failure = Some(Failure::new(code.exit(), error)),
                _ => {}
            }
        }
    }
    match (summary, failure) {
        (Some(summary), None) => Ok(summary),
        (_, Some(failure)) => Err(failure),
        (None, None) => Err(Failure::new(
            dodona_proto::ExitKind::Failed,
            "the index was not brought in step",
        )),
    }
}
