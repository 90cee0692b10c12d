//! What a tool gave, as the result of a method: bounded, and in one form.

use dodona_plugin::ToolText;
use dodona_proto::{CallError, ErrorCode};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

use super::tools::Offered;
use crate::text;

/// The longest word of a failed tool that is passed on.
const FAILURE: usize = 4_000;

/// Turns what a tool gave into a result, or into the error that it is.
pub(crate) fn value(
    offered: &Offered,
    result: CallToolResult,
    most: usize,
) -> Result<Value, CallError> {
    let is_error = result.is_error.unwrap_or(false);
    let structured = result.structured_content;
    let blocks = result
        .content
        .iter()
        .map(|block| serde_json::to_value(block).unwrap_or(Value::Null));
    let Parts { text, blocks } = Parts::of(blocks, most);
    if is_error {
        let said = text::clean(&text, FAILURE);
        let said = if said.is_empty() {
            "the tool failed".to_owned()
        } else {
            said
        };
        return Err(CallError::plugin("mcp.tool_failed", said));
    }
    let Some(validator) = &offered.output else {
        let mut object = Map::from_iter([("text".to_owned(), Value::String(text))]);
        if !blocks.is_empty() {
            object.insert("blocks".to_owned(), Value::Array(blocks));
        }
        if let Some(structured) = structured.filter(|data| data.to_string().len() <= most) {
            object.insert("structured".to_owned(), structured);
        }
        return Ok(Value::Object(object));
    };
    let Some(structured) = structured else {
        return Err(unfit(
            "it gave no structured result although it describes one",
        ));
    };
    if structured.to_string().len() > most {
        let message = format!("the tool's result has more than {most} bytes");
        return Err(CallError::new(ErrorCode::TooLarge, message)
            .hint("ask for less, or raise `max_output` in the server's settings"));
    }
    match validator.validate(&structured) {
        Ok(()) => Ok(structured),
        Err(error) => Err(unfit(&format!(
            "its result does not fit its own schema: {}",
            text::line(&error.to_string(), 300)
        ))),
    }
}

/// A result as a model reads it: its text, and the kinds of its other blocks. A result without text
/// has no renderer of its own.
pub(crate) fn render(value: &Value) -> Option<ToolText> {
    let text = value["text"].as_str().filter(|text| !text.is_empty())?;
    let known = ["text", "blocks", "structured"];
    if !value
        .as_object()?
        .keys()
        .all(|key| known.contains(&key.as_str()))
    {
        return None;
    }
    let blocks = value["blocks"].as_array().into_iter().flatten();
    let blocks: Vec<&str> = blocks
        .map(|block| block["type"].as_str().unwrap_or("unknown"))
        .collect();
    let head = match blocks.is_empty() {
        true => String::new(),
        false => format!("[not shown here: {}]", blocks.join(", ")),
    };
    Some(ToolText::list(head, text.lines().map(str::to_owned)))
}

fn unfit(why: &str) -> CallError {
    CallError::plugin("mcp.bad_result", why)
}

/// Text, and everything else.
pub(crate) struct Parts {
    pub(crate) text: String,
    pub(crate) blocks: Vec<Value>,
}

impl Parts {
    /// Sorts blocks of content. Together they have no more than so many bytes; what is cut or left
    /// out says so.
    pub(crate) fn of(content: impl Iterator<Item = Value>, most: usize) -> Self {
        let (mut text, mut blocks) = (String::new(), Vec::new());
        let mut room = most;
        for block in content {
            match words(&block) {
                Some(said) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    add(&mut text, said, &mut room, most);
                }
                None => blocks.push(kept(block, &mut room)),
            }
        }
        Self { text, blocks }
    }
}

/// The text of a block that is nothing else.
fn words(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str(),
        _ => None,
    }
}

fn add(text: &mut String, said: &str, room: &mut usize, most: usize) {
    if said.len() <= *room {
        *room -= said.len();
        return text.push_str(said);
    }
    let shown = said.floor_char_boundary(*room);
    text.push_str(&said[..shown]);
    let left = said.len() - shown;
    text.push_str(&format!(
        "\n[cut: {left} more bytes; a result has at most {most}]"
    ));
    *room = 0;
}

/// A block as it is, or the note that it was too large.
fn kept(block: Value, room: &mut usize) -> Value {
    let size = block.to_string().len();
    if size <= *room {
        *room -= size;
        return block;
    }
    json!({
        "type": block["type"].as_str().map(|kind| text::line(kind, 40)),
        "mimeType": block["mimeType"].as_str().map(|kind| text::line(kind, 80)),
        "omitted": format!("{size} bytes, more than a result may have"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(blocks: Value, most: usize) -> Parts {
        Parts::of(blocks.as_array().unwrap().clone().into_iter(), most)
    }

    #[test]
    fn text_is_joined_and_cut_with_a_mark_and_what_is_too_large_is_named() {
        let two = parts(
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            9,
        );
        assert_eq!((two.text.as_str(), two.blocks.len()), ("a\nb", 0));
        let cut = parts(json!([{"type": "text", "text": "äääää"}]), 5);
        assert_eq!(cut.text, "ää\n[cut: 6 more bytes; a result has at most 5]");
        let image = json!([{"type": "image", "mimeType": "image/png", "data": "x".repeat(100)}]);
        let kept = parts(image.clone(), 1000);
        assert_eq!(json!(kept.blocks), image);
        let omitted = parts(image, 50);
        assert_eq!(omitted.blocks[0]["mimeType"], "image/png");
        assert!(
            omitted.blocks[0]["omitted"]
                .as_str()
                .unwrap()
                .ends_with("may have")
        );
        assert_eq!(omitted.blocks[0].get("data"), None);
    }
}
