//! The order in which a message's blocks came, and the reasoning among them: signed blocks must
//! go back unchanged, and where they were.

use dodona_proto::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A block of an answer, as it is kept: what the message itself holds is only pointed at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KeptBlock {
    /// The next so many bytes of the text.
    Text { bytes: usize },
    /// A tool call.
    ToolUse { id: String },
    /// Reasoning, and the signature that makes it acceptable.
    Thinking { thinking: String, signature: String },
    /// Reasoning that only the provider can read.
    RedactedThinking { data: String },
}

impl KeptBlock {
    fn is_reasoning(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

/// What to keep in a message; nothing where there was no reasoning.
pub(super) fn into_opaque(blocks: &[KeptBlock], model: &str) -> Option<Value> {
    let reasoned = blocks.iter().any(KeptBlock::is_reasoning);
    reasoned.then(|| json!({ "model": model, "messages": blocks }))
}

/// The blocks of a message for this model, in the order to send them.
///
/// Where the message has been changed since, its reasoning comes first and the rest as it is now.
pub(super) fn of(
    content: &str,
    calls: &[ToolCall],
    opaque: Option<&Value>,
    model: &str,
) -> Vec<KeptBlock> {
    let kept: Vec<KeptBlock> = opaque
        .filter(|opaque| opaque["model"] == model)
        .and_then(|opaque| Deserialize::deserialize(&opaque["messages"]).ok())
        .unwrap_or_default();
    if fits(&kept, content, calls) {
        return kept;
    }
    let text = (!content.is_empty()).then_some(KeptBlock::Text {
        bytes: content.len(),
    });
    let calls = calls.iter().map(|call| KeptBlock::ToolUse {
        id: call.id.clone(),
    });
    let reasoning = kept.into_iter().filter(KeptBlock::is_reasoning);
    reasoning.chain(text).chain(calls).collect()
}

fn fits(kept: &[KeptBlock], content: &str, calls: &[ToolCall]) -> bool {
    let mut at = 0;
    let mut at_boundaries = true;
    let mut ids = Vec::new();
    for block in kept {
        match block {
            KeptBlock::Text { bytes } => {
                at += bytes;
                at_boundaries &= content.is_char_boundary(at);
            }
            KeptBlock::ToolUse { id } => ids.push(id),
            KeptBlock::Thinking { .. } | KeptBlock::RedactedThinking { .. } => {}
        }
    }
    at_boundaries && at == content.len() && ids.into_iter().eq(calls.iter().map(|call| &call.id))
}
