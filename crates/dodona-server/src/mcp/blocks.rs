//! What came of a call, in the form of a tool's result.

use dodona_proto::{CallError, MethodDescriptor};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Deserialize;
use serde_json::{Value, json};

/// The result of a method: an object as it is and as text. What a mounted server or a script
/// answered with, text and other blocks, is passed on as that.
pub(super) fn success(method: &MethodDescriptor, value: Value) -> CallToolResult {
    if has_blocks(method)
        && let Ok(outside) = Outside::deserialize(&value)
    {
        return outside.passed_on();
    }
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    // Clients before 2026-07-28 take objects only.
    result.structured_content = value.is_object().then_some(value);
    result
}

/// Whether a method answers with text and blocks, which its schema says by this name.
pub(super) fn has_blocks(method: &MethodDescriptor) -> bool {
    method.result["title"] == "ToolResult"
}

/// What came from outside: text, blocks in MCP's own form, and data.
#[derive(Deserialize)]
struct Outside {
    #[serde(default)]
    text: String,
    #[serde(default)]
    blocks: Vec<Value>,
    structured: Option<Value>,
}

impl Outside {
    fn passed_on(self) -> CallToolResult {
        let text = (!self.text.is_empty()).then(|| ContentBlock::text(self.text));
        // One that was left out for its size stands there as a note of ours, and is told as text.
        let blocks = self.blocks.into_iter().map(|block| {
            let note = block.to_string();
            serde_json::from_value(block).unwrap_or_else(|_| ContentBlock::text(note))
        });
        let mut result = CallToolResult::success(text.into_iter().chain(blocks).collect());
        result.structured_content = self.structured.filter(Value::is_object);
        result
    }
}

/// An error that the model is to see, and may mend.
pub(super) fn failure(error: &CallError) -> CallToolResult {
    let hint = error.hint_text().map(|hint| format!("\nhint: {hint}"));
    let text = format!("{}{}", error.message, hint.unwrap_or_default());
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    let mut meta = MetaObject::new();
    let about = json!({ "code": error.code, "retryable": error.retryable });
    meta.insert("dodona/error".to_owned(), about);
    result.meta = Some(meta);
    result
}
