//! A passage as methods answer with it.

use dodona_plugin::{ToolText, tool_text};
use dodona_proto::Source;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::search::Hit;

/// A passage that answers a question, and where it stands.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Passage {
    /// Where it stands.
    pub(crate) source: Source,
    /// The headings or containers above it.
    pub(crate) heading: String,
    /// The language of code.
    pub(crate) language: Option<String>,
    /// The text.
    pub(crate) text: String,
    /// How well it answers; larger is better, and only that.
    pub(crate) score: f32,
}

/// Passages, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Passages {
    pub(crate) passages: Vec<Passage>,
}

impl From<Vec<Hit>> for Passages {
    fn from(hits: Vec<Hit>) -> Self {
        Self {
            passages: hits.into_iter().map(Passage::from).collect(),
        }
    }
}

impl From<Hit> for Passage {
    fn from(hit: Hit) -> Self {
        let source = hit.source();
        Self {
            source,
            heading: hit.heading,
            language: hit.language,
            text: hit.text,
            score: hit.score,
        }
    }
}

/// Passages as a model reads them: `[1] path:10-20` with the heading, then the text, in which each
/// line of a file has its number.
pub(crate) fn render(value: &Value) -> Option<ToolText> {
    let passages = value["passages"].as_array()?;
    let head = match passages.is_empty() {
        true => "Nothing was found.",
        false => "",
    };
    let items: Option<Vec<String>> = passages.iter().map(tool_text::passage).collect();
    Some(ToolText::list(head, items?))
}
