//! Tool results as a model reads them.

use dodona_plugin::{CallError, ToolRenderer, ToolText};
use dodona_proto::{MethodDescriptor, ToolCall};
use serde_json::{Value, json};

use super::ending::QueryError;
use super::{QueryRun, cut};

/// Bytes that the head of a file and the note of a cut may take.
const AROUND_TEXT: usize = 500;

/// A result that is to be shown to a model.
pub(super) struct Presented<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) outcome: Result<Value, CallError>,
    pub(super) renderer: Option<ToolRenderer>,
    /// A note for the model about the call itself, such as that it repeats an earlier one.
    pub(super) notice: Option<String>,
    /// How many results, this one included, share the room that is left.
    pub(super) waiting: usize,
}

impl QueryRun<'_> {
    /// A result as the model sees it: whole, or cut, with the way to read the rest.
    pub(super) async fn present(&mut self, presented: Presented<'_>) -> Result<String, QueryError> {
        let shown = match self.model.quotes() {
            true => self.present_json(presented).await?,
            false => self.present_text(presented).await?,
        };
        self.query.note_sources(self.citations.take_unstored());
        Ok(shown)
    }

    async fn present_text(&mut self, presented: Presented<'_>) -> Result<String, QueryError> {
        let Presented {
            call,
            renderer,
            notice,
            waiting,
            ..
        } = presented;
        let notice = notice
            .map(|notice| format!("[{notice}]\n"))
            .unwrap_or_default();
        let room = self.share(waiting);
        let mut value = match presented.outcome {
            Ok(value) => value,
            Err(error) => return Ok(format!("{notice}{}", error_text(&error))),
        };
        let render = |value: &Value| {
            let rendered = renderer.and_then(|render| render(value));
            rendered.unwrap_or_else(|| ToolText::generic(value))
        };
        // Before sources are numbered: a citation covers the lines that the model has read.
        if let Some(bytes) = self.fitting(&render(&value).whole(), room) {
            self.shorten_file(call, &mut value, bytes.saturating_sub(AROUND_TEXT));
        }
        self.citations.number(&mut value);
        let text = render(&value);
        let whole = text.whole();
        let Some(bytes) = self.fitting(&whole, room) else {
            self.citations.reveal(&whole);
            return Ok(format!("{notice}{whole}"));
        };
        let shown = cut::cut(&text, &whole, bytes);
        let handle = self.query.keep_result(&call.id, whole.clone()).await?;
        let note = cut::note(&text, &whole, &shown, &handle);
        let (shown, rest) = whole.split_at(shown.end);
        self.citations.hide(rest);
        self.citations.reveal(shown);
        let line_end = if shown.ends_with('\n') { "" } else { "\n" };
        Ok(format!("{notice}{shown}{line_end}{note}"))
    }

    /// Shortens what can be read on by the same tool: a file by its lines, a stored result by its
    /// characters.
    fn shorten_file(&self, call: &ToolCall, value: &mut Value, bytes: usize) {
        let Some(method) = self.toolbox.method(&call.name) else {
            return;
        };
        if method.name.as_str() == "agent.result" {
            cut::to_part(value, bytes);
        } else if takes(method, "from") {
            cut::to_lines(value, &call.name, bytes);
        }
    }

    /// A model that quotes is a program and reads the structured result.
    async fn present_json(&mut self, presented: Presented<'_>) -> Result<String, QueryError> {
        let Presented {
            call,
            outcome,
            notice,
            waiting,
            ..
        } = presented;
        let mut result = outcome.unwrap_or_else(|error| {
            json!({ "error": error.message, "code": error.code, "hint": error.hint_text() })
        });
        self.citations.number(&mut result);
        if let Some(notice) = notice {
            result = json!({ "notice": notice, "result": result });
        }
        let whole = result.to_string();
        let Some(bytes) = self.fitting(&whole, self.share(waiting)) else {
            return Ok(whole);
        };
        let handle = self.query.keep_result(&call.id, whole).await?;
        Ok(cut::to_size(result, bytes, &handle))
    }

    /// How many tokens a result may take when `waiting` of them, itself included, share the room.
    fn share(&self, waiting: usize) -> u64 {
        cut::share(self.snapshot.tokens_used, self.room(), waiting)
    }

    /// How many bytes of a text fit into so many tokens. `None` if all of it does.
    fn fitting(&self, text: &str, tokens: u64) -> Option<usize> {
        cut::fitting(&self.model.counter(), text, tokens)
    }
}

/// Whether a method has this parameter.
fn takes(method: &MethodDescriptor, parameter: &str) -> bool {
    let properties = method.params.get("properties");
    properties.is_some_and(|known| known.get(parameter).is_some())
}

/// An error as a model reads it.
fn error_text(error: &CallError) -> String {
    let mut text = format!("error ({}): {}", error.code, error.message);
    if let Some(hint) = error.hint_text() {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}
