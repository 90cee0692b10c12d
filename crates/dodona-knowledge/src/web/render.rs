//! Results of the plugin `web` as text for models.

use dodona_plugin::tool_text::cite_mark;
use dodona_plugin::{Method, ToolText};
use serde_json::Value;

use crate::code::render::empty;

/// Adds the renderer of a method's result.
pub(super) fn with_renderer(method: Method) -> Method {
    let renderer = match method.descriptor().name.as_str() {
        "web.fetch" => page,
        "web.search" => results,
        _ => return method,
    };
    method.rendered(renderer)
}

fn page(value: &Value) -> Option<ToolText> {
    let mut head = format!("{}{}", cite_mark(value), value["url"].as_str()?);
    if let Some(title) = value["title"].as_str() {
        head.push_str("\nTitle: ");
        head.push_str(title);
    }
    if value["truncated"].as_bool() == Some(true) {
        head.push_str("\n[the page is longer: raise `max_tokens` to read more of it]");
    }
    let lines = value["text"].as_str()?.lines().map(str::to_owned);
    Some(ToolText::list(head, lines))
}

fn results(value: &Value) -> Option<ToolText> {
    let found = value["results"].as_array()?;
    let items = found.iter().map(|result| {
        let text = |field: &str| result[field].as_str().unwrap_or_default();
        format!("{}\n{}\n{}\n", text("title"), text("url"), text("excerpt"))
    });
    Some(ToolText::list(empty(found, "Nothing was found."), items))
}
