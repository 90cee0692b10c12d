//! A tool that the model uses, in a line.

use std::time::Duration;

use serde_json::Value;

use crate::layout;
use crate::paint::{Paint, one_line};
use crate::quantity;

/// The arguments that tell best what a tool is used for.
const TELLING: [&str; 4] = ["query", "path", "name", "symbol"];

/// The longest line where the output is no terminal.
const LONGEST: usize = 160;

/// A tool at work.
pub(super) struct Tool {
    id: String,
    title: String,
}

impl Tool {
    /// From a `ToolCall`.
    pub(super) fn started(data: &Value) -> Self {
        let name = data["method"].as_str().or(data["name"].as_str());
        let name = one_line(name.unwrap_or_default());
        let title = match about(&data["arguments"]) {
            // A phrase is asked for in quotes of its own.
            Some(about) if about.starts_with('"') => format!("{name} {}", one_line(about)),
            Some(about) => format!("{name} \"{}\"", one_line(about)),
            None => name,
        };
        Self {
            id: data["id"].as_str().unwrap_or_default().to_owned(),
            title,
        }
    }

    /// Whether a `ToolResult` is this one's.
    pub(super) fn has_id(&self, data: &Value) -> bool {
        data["id"] == self.id.as_str()
    }

    /// What it is called and asked.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// How it went, from a `ToolResult`.
    pub(super) fn ended(&self, data: &Value, paint: Paint, width: Option<usize>) -> String {
        let time = data["duration_ms"].as_u64().map(Duration::from_millis);
        let time = time.map(|time| format!(" · {}", quantity::show_elapsed(time)));
        let time = time.unwrap_or_default();
        let ending = data["ending"].as_str().unwrap_or("error");
        let trouble = match (ending, data["error"].as_str()) {
            ("success", _) => String::new(),
            (ending, None) => format!(" · {ending}"),
            (ending, Some(error)) => format!(" · {ending}: {}", one_line(error)),
        };
        let room = width.or(Some(LONGEST));
        let taken = 2 + time.chars().count();
        // Where both are long, what went wrong is worth more than what was asked.
        let half = taken + trouble.chars().count().min(40);
        let title = layout::cut(&self.title, half, room);
        let trouble = layout::cut(&trouble, taken + title.chars().count(), room);
        format!(
            "{}{}{}",
            paint.dim(format_args!("› {title}")),
            paint.dim(time),
            paint.note(trouble)
        )
    }
}

fn about(arguments: &Value) -> Option<&str> {
    let telling = TELLING.iter().find_map(|name| arguments[name].as_str());
    let first = || arguments.as_object()?.values().find_map(Value::as_str);
    telling.or_else(first).filter(|about| !about.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(call: &Value, result: &Value, width: Option<usize>) -> String {
        Tool::started(call).ended(result, Paint::plain(), width)
    }

    #[test]
    fn a_line_has_what_was_asked_and_how_long_it_took() {
        let call = json!({"id": "a", "name": "code_search", "method": "code.search", "arguments": {"limit": 3, "query": "login\ntoken"}});
        let result = json!({"id": "a", "ending": "success", "error": null, "duration_ms": 12});
        assert!(Tool::started(&call).has_id(&result));
        assert_eq!(
            line(&call, &result, None),
            "› code.search \"login token\" · 12 ms"
        );
    }

    #[test]
    fn what_went_wrong_is_told() {
        let call = json!({"id": "a", "name": "nosuch", "method": null, "arguments": "{"});
        let result = json!({"id": "a", "ending": "error", "error": "there is no such tool", "duration_ms": 0});
        assert_eq!(
            line(&call, &result, None),
            "› nosuch · 0 ms · error: there is no such tool"
        );
        let late = json!({"id": "a", "ending": "timeout", "error": null, "duration_ms": 1500});
        assert_eq!(line(&call, &late, None), "› nosuch · 1.5 s · timeout");
    }

    #[test]
    fn a_line_stays_within_the_terminal() {
        let call = json!({"id": "a", "name": "x", "method": "code.search", "arguments": {"query": "q".repeat(200)}});
        let result =
            json!({"id": "a", "ending": "error", "error": "e".repeat(200), "duration_ms": 7});
        let line = line(&call, &result, Some(80));
        assert!(line.chars().count() <= 80, "{line}");
        assert!(line.contains(" · error: e"), "{line}");
    }
}
