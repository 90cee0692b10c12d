//! `agent.result`.

use dodona_plugin::{CallError, ToolText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::line_end;
use crate::conversation::{Conversations, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ResultParams {
    /// The handle from the note of the cut result.
    handle: String,
    /// The number of characters to skip, from the same note. Default: 0.
    #[serde(default)]
    from: usize,
    /// The maximum number of characters. Default: 20000.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100_000))]
    limit: usize,
}

fn default_limit() -> usize {
    20_000
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ResultPart {
    /// The handle, for the next call.
    handle: String,
    /// Where this part begins, in characters.
    from: usize,
    /// The part. It ends with a line where possible.
    text: String,
    /// Where the next part begins, if there is one.
    next: Option<usize>,
    /// The length of the whole result in characters.
    total: usize,
}

pub(super) async fn part(
    conversations: &Conversations,
    owner: &Owner,
    p: ResultParams,
) -> Result<ResultPart, CallError> {
    let whole = conversations.result(owner, &p.handle).await?;
    let total = whole.chars().count();
    let mut text: String = whole.chars().skip(p.from).take(p.limit).collect();
    if p.from + p.limit < total {
        text.truncate(line_end(&text, text.len()));
    }
    let end = p.from + text.chars().count();
    Ok(ResultPart {
        next: (end < total).then_some(end),
        handle: p.handle,
        from: p.from,
        text,
        total,
    })
}

/// A part as a model reads it.
pub(super) fn render(value: &Value) -> Option<ToolText> {
    let (text, from) = (value["text"].as_str()?, value["from"].as_u64()?);
    let (handle, total) = (value["handle"].as_str()?, value["total"].as_u64()?);
    let first = from + 1;
    let note = match value["next"].as_u64() {
        Some(next) => format!(
            "[characters {first}-{next} of {total}. Read on with agent_result {{\"handle\": \"{handle}\", \"from\": {next}}}]"
        ),
        None => format!("[characters {first}-{total} of {total}, the end of the result]"),
    };
    Some(ToolText::list(note, [text.to_owned()]))
}
