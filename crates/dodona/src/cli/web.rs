//! `dodona web`.

use std::fmt::Write as _;
use std::io;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{part, show, tell};
use crate::failure::Failure;
use crate::paint::{Paint, harmless};
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona web fetch https://example.org/
  dodona web search \"sqlite wal checkpoint\"";

/// Fetch web pages as Markdown, or search the web if a search is configured
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Web {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch a page and print it as Markdown
    Fetch {
        /// The URL
        url: String,
        /// Approximate maximum length, in tokens
        #[arg(long, default_value_t = 4000, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(100..=50_000))]
        max_tokens: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the web
    Search {
        /// The search query
        query: String,
        /// Maximum number of results
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct Found {
    title: String,
    url: String,
    excerpt: String,
}

impl Web {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
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
            Self::Fetch {
                url,
                max_tokens,
                json,
            } => {
                let params = json!({ "url": url, "max_tokens": max_tokens });
                let page: Value = session.ask("web.fetch", params).await?;
                show(json, &page, || text(&page, paint))
            }
            Self::Search { query, limit, json } => {
                let params = json!({ "query": query, "limit": limit });
                let found: Vec<Found> = part(session, "web.search", params, "results").await?;
                show(json, &found, || list(&found, paint))
            }
        })
    }
}

fn text(page: &Value, paint: Paint) -> String {
    let part = |name: &str| page[name].as_str().unwrap_or_default();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}  {}",
        paint.bold(harmless(part("title"))),
        paint.dim(harmless(part("url")))
    );
    for line in part("text").lines() {
        let _ = writeln!(text, "{}", harmless(line));
    }
    if page["truncated"] == true {
        let _ = writeln!(text, "{}", paint.dim("… there is more; see --max-tokens"));
    }
    text
}

fn list(found: &[Found], paint: Paint) -> String {
    if found.is_empty() {
        return "nothing was found\n".to_owned();
    }
    let mut text = String::new();
    for page in found {
        let _ = writeln!(
            text,
            "{}  {}",
            paint.bold(harmless(&page.title)),
            harmless(&page.url)
        );
        let _ = writeln!(text, "    {}", harmless(&page.excerpt));
    }
    text
}
