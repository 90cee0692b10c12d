//! Named fields, as every language reads them.

use serde_json::{Map, Value};

use super::facts::{CallFacts, EventFacts, Facts, History, Party, ResultFacts, Turn};
use super::{RuleContext, functions};

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Cell<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'a str),
    Json(&'a Value),
    Record(&'a dyn Record),
    /// The state of a plugin, which has methods in scripts and templates.
    State(&'a super::state::StateView),
}

/// Something with named fields.
pub(super) trait Record:
    dodona_expr::Mapping + dodona_script::Object + dodona_template::Object
{
    /// The names of its fields, in order.
    fn fields(&self) -> &'static [&'static str];

    /// The field of this name.
    fn cell(&self, name: &str) -> Option<Cell<'_>>;

    /// What can be called on it.
    fn verbs(&self) -> &'static [&'static str] {
        &[]
    }

    fn invoke(&self, _name: &str, _arguments: &[Value]) -> Option<Result<Value, String>> {
        None
    }
}

/// A record as JSON.
pub(super) fn to_json(record: &dyn Record) -> Value {
    let fields = record.fields().iter().map(|name| {
        let value = match record.cell(name).unwrap_or(Cell::None) {
            Cell::None => Value::Null,
            Cell::Bool(value) => Value::from(value),
            Cell::Int(value) => Value::from(value),
            Cell::Float(value) => Value::from(value),
            Cell::Str(text) => Value::from(text),
            Cell::Json(value) => value.clone(),
            Cell::Record(inner) => to_json(inner),
            Cell::State(state) => state.json().clone(),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn optional<T: Record>(record: &Option<T>) -> Cell<'_> {
    record
        .as_ref()
        .map_or(Cell::None, |record| Cell::Record(record))
}

/// Says which fields a struct shows, and how.
macro_rules! record {
    ($type:ty: $($name:literal => $cell:expr),+ $(,)?; $($rest:item)*) => {
        impl Record for $type {
            fn fields(&self) -> &'static [&'static str] {
                &[$($name),+]
            }

            fn cell(&self, name: &str) -> Option<Cell<'_>> {
                match name {
                    $($name => {
                        let cell: for<'a> fn(&'a $type) -> Cell<'a> = $cell;
                        Some(cell(self))
                    })+
                    _ => None,
                }
            }

            $($rest)*
        }
    };
}

record! { Turn:
    "number" => |turn| Cell::Int(turn.number),
    "token_usage" => |turn| Cell::Float(turn.token_usage),
    "context_usage" => |turn| Cell::Float(turn.context_usage),
    "iteration_count" => |turn| Cell::Int(turn.iteration_count),
    "max_iterations" => |turn| Cell::Int(turn.max_iterations),
;}

record! { History:
    "messages" => |history| Cell::Json(&history.messages),
    "tools" => |history| Cell::Json(&history.tools),
    "failures" => |history| Cell::Json(&history.failures),
    "total_tool_calls" => |history| Cell::Int(history.total_tool_calls),
    "total_failures" => |history| Cell::Int(history.total_failures),
;
    fn verbs(&self) -> &'static [&'static str] {
        &["get_failures_for_tool"]
    }

    fn invoke(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        (name == "get_failures_for_tool").then(|| functions::failures_for(self, arguments))
    }
}

record! { Party:
    "id" => |party| Cell::Str(&party.id),
    "settings" => |party| Cell::Json(&party.settings),
;}

record! { EventFacts:
    "type" => |event| Cell::Str(&event.kind),
    "source" => |event| Cell::Str(&event.source),
    "severity" => |event| Cell::Str(&event.severity),
    "payload" => |event| Cell::Json(&event.payload),
    "timestamp" => |event| Cell::Str(&event.timestamp),
;}

record! { CallFacts:
    "tool_name" => |call| Cell::Str(&call.tool_name),
    "arguments" => |call| Cell::Json(&call.arguments),
;}

record! { ResultFacts:
    "tool_name" => |result| Cell::Str(&result.tool_name),
    "success" => |result| Cell::Bool(result.success),
    "result" => |result| Cell::Json(&result.result),
    "error" => |result| result.error.as_deref().map_or(Cell::None, Cell::Str),
    "duration_ms" => |result| Cell::Float(result.duration_ms),
;}

// `context` itself.
record! { RuleContext:
    "turn" => |context| Cell::Record(&context.facts.turn),
    "history" => |context| Cell::Record(&context.facts.history),
    "user" => |context| Cell::Record(&context.facts.user),
    "project" => |context| Cell::Record(&context.facts.project),
    "state" => |context| Cell::State(&context.state),
    "event" => |context| optional(&context.facts.event),
    "call" => |context| optional(&context.facts.call),
    "result" => |context| optional(&context.facts.result),
;
    fn verbs(&self) -> &'static [&'static str] {
        &["project_state"]
    }

    fn invoke(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        (name == "project_state").then(|| {
            let project = functions::project_argument(&arguments)?;
            Ok(self.project_state(project).clone())
        })
    }
}

impl Facts {
    /// Whether everything that shall be a list or an object is one.
    pub(super) fn shapes(&self) -> Result<(), String> {
        let wrong = |name: &str, what: &str| Err(format!("`{name}` must be {what}"));
        let history = &self.history;
        if !history.messages.is_array() || !history.tools.is_array() {
            return wrong("history.messages` and `history.tools", "lists");
        }
        for (name, value) in [
            ("history.failures", &*history.failures),
            ("user.settings", &*self.user.settings),
            ("project.settings", &*self.project.settings),
        ] {
            if !value.is_object() {
                return wrong(name, "a table");
            }
        }
        match (&self.event, &self.call) {
            (Some(event), _) if !event.payload.is_object() => wrong("event.payload", "a table"),
            (_, Some(call)) if !call.arguments.is_object() => wrong("call.arguments", "a table"),
            _ => Ok(()),
        }
    }
}
