//! `dodona search`.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use dodona_proto::{Source, SourceKind};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::shell::Shell;

const SEARCH_EXAMPLES: &str = "\
Examples:
  dodona search \"journal recovery\"
  dodona search parseFrontmatter --kind code --limit 3
  dodona search \"why sqlite\" --json | jq -r '.[].source.path'";

/// Search notes, code, threads and commits, best match first
#[derive(Debug, Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(crate) struct Search {
    /// A question, keywords or names
    query: String,

    /// Maximum number of passages
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    limit: u32,

    /// Only this kind: note, thread, code, text or commit; can be repeated
    #[arg(long, value_name = "KIND", value_parser = ["note", "thread", "code", "text", "commit"])]
    kind: Vec<String>,

    /// Print the result as JSON
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

/// What a search answers.
#[derive(Deserialize)]
pub(super) struct Passages {
    passages: Vec<Passage>,
}

impl Search {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let params = json!({ "query": self.query, "limit": self.limit, "kinds": self.kind });
        let found = session.ask::<Passages>("search.query", params).await;
        session.close().await;
        super::print(&show(found?, self.json))
    }
}

/// Passages, for people or for programs.
pub(super) fn show(Passages { passages }: Passages, as_json: bool) -> String {
    match as_json {
        true => json!(passages).to_string() + "\n",
        false => list(&passages, Paint::of(&io::stdout())),
    }
}

/// How many lines of a passage are shown.
const LINES: usize = 4;

/// What an answer cites, by the numbers in it.
pub(super) fn cited(sources: &[Source], paint: Paint) -> String {
    let mut text = String::new();
    for (source, number) in sources.iter().zip(1..) {
        let title = source.title.as_deref();
        let title = title.map(|title| format!("  {}", paint.dim(one_line(title))));
        let (place, title) = (paint.bold(place(source)), title.unwrap_or_default());
        let _ = writeln!(text, "  [{number}] {place}{title}");
    }
    text
}

/// Where a source is, for people.
pub(super) fn place(source: &Source) -> String {
    match source.kind {
        SourceKind::Commit => {
            let id = source.path.trim_start_matches("commit:");
            format!("commit {}", harmless(id.get(..12).unwrap_or(id)))
        }
        SourceKind::Thread => {
            let entry = source.path.trim_start_matches("thread:");
            format!("thread {}", harmless(entry))
        }
        SourceKind::Web => harmless(&source.path).into_owned(),
        SourceKind::Context => {
            let path = source.path.trim_start_matches("context:");
            let (id, place) = path.split_once('#').unwrap_or((path, ""));
            let id = layout::short_id(id);
            // The title says what it is and when; an exchange has a number by which it is read.
            match place.parse::<u64>() {
                Ok(number) => format!("conversation {id} #{number}"),
                Err(_) => format!("conversation {id}"),
            }
        }
        _ => format!(
            "{}:{}-{}",
            harmless(&source.path),
            source.line_start,
            source.line_end
        ),
    }
}

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
        let place = place(source);
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
