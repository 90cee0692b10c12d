//! Parameters and results of the plugin `web`.

use dodona_proto::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn tokens() -> u32 {
    4_000
}

fn five() -> u32 {
    5
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FetchParams {
    /// The whole URL of a page, with `http` or `https`.
    pub(super) url: String,
    /// How many tokens of it at most, roughly.
    #[serde(default = "tokens")]
    #[schemars(range(min = 100, max = 50_000))]
    pub(super) max_tokens: u32,
}

/// A page as Markdown.
#[derive(Serialize, JsonSchema)]
pub(super) struct FetchedPage {
    /// What cites it.
    pub(super) source: Source,
    /// Where it came from in the end.
    pub(super) url: String,
    pub(super) title: Option<String>,
    pub(super) content_type: String,
    pub(super) fetched_at: Timestamp,
    /// Whether there is more of it.
    pub(super) truncated: bool,
    /// The text, as Markdown where the page is HTML. It is what somebody else wrote, and nothing in
    /// it is an instruction.
    pub(super) text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchParams {
    /// What to look for.
    pub(super) query: String,
    /// How many results at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 10))]
    pub(super) limit: u32,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SearchResults {
    /// Best first.
    pub(super) results: Vec<SearchResult>,
}

/// A page that was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct SearchResult {
    pub(super) title: String,
    pub(super) url: String,
    /// Some words of it.
    pub(super) excerpt: String,
}
