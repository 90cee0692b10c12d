//! Results of the plugin `thread` as text for models.

use dodona_plugin::tool_text::cite_mark;
use dodona_plugin::{Method, ToolText};
use serde_json::Value;

use crate::code::render::empty;
use crate::passage;

/// Adds the renderer of a method's result.
pub(super) fn with_renderer(method: Method) -> Method {
    let renderer = match method.descriptor().name.as_str() {
        "thread.seek" => passage::render,
        "thread.read" => entries,
        "thread.list" | "thread.archive" => threads,
        "thread.push" => pushed,
        _ => return method,
    };
    method.rendered(renderer)
}

fn entries(value: &Value) -> Option<ToolText> {
    let found = value["entries"].as_array()?;
    let items = found.iter().map(|entry| {
        format!(
            "{}entry {} ({}, {}, {})\n{}\n",
            cite_mark(entry),
            entry["entry"],
            text(entry, "entry_type"),
            text(entry, "author"),
            day(text(entry, "at")),
            text(entry, "text").trim_end()
        )
    });
    let thread = format!("thread {}", value["thread_id"].as_str()?);
    Some(ToolText::list(thread, items))
}

fn threads(value: &Value) -> Option<ToolText> {
    let found = value["threads"].as_array()?;
    let items = found.iter().map(|thread| {
        let archived = match thread["archived"].as_bool() {
            Some(true) => ", archived",
            _ => "",
        };
        format!(
            "{}: {} entries, latest {}{archived}: {}",
            text(thread, "thread_id"),
            thread["entries"],
            day(text(thread, "latest")),
            text(thread, "last")
        )
    });
    Some(ToolText::list(empty(found, "There are no threads."), items))
}

fn pushed(value: &Value) -> Option<ToolText> {
    let thread = value["thread_id"].as_str()?;
    Some(ToolText::plain(format!(
        "Written as entry {} of thread {thread}.",
        value["entry"]
    )))
}

fn day(time: &str) -> &str {
    &time[..time.floor_char_boundary(10)]
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}
