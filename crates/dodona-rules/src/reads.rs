//! What of an event a rule reads, as far as that may be large or missing.
//!
//! Going through the journal, most events are read for a few numbers. What a rule never looks at is
//! not decoded, and that it is missing does not concern the rule.

use std::ops::BitOr;

use dodona_expr::Expr;
use serde_json::Value;

use crate::context::schema;
use crate::format::{Action, Trigger};

/// Parts of an event, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads(u8);

impl Reads {
    pub const PAYLOAD: Self = Self(1);
    pub const ARGUMENTS: Self = Self(1 << 1);
    pub const RESULT: Self = Self(1 << 2);
    /// `context.history.tools`, and what is answered from it.
    pub const TOOLS: Self = Self(1 << 3);
    pub const MESSAGES: Self = Self(1 << 4);
    pub const PROJECT_STATE: Self = Self(1 << 5);
    pub const ALL: Self = Self(0b11_1111);

    /// Nothing of the kind.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether it has one of these.
    pub fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// What an expression reads: its fields are known.
    pub(crate) fn of_expression(expr: &Expr, trigger: Trigger) -> Self {
        let schema = schema(trigger);
        let fields = expr.fields().filter_map(|slot| schema.slot_path(slot));
        let calls = expr.calls().filter_map(|call| schema.function_path(call));
        let fields = fields.map(Self::of_path).fold(Self::none(), Self::bitor);
        calls.map(Self::of_call).fold(fields, Self::bitor)
    }

    fn of_path(path: &str) -> Self {
        match path {
            "context" => Self::ALL,
            "context.event" | "context.event.payload" => Self::PAYLOAD,
            "context.call" | "context.call.arguments" => Self::ARGUMENTS,
            "context.result" | "context.result.result" => Self::RESULT,
            "context.history" => Self::TOOLS | Self::MESSAGES,
            "context.history.tools" => Self::TOOLS,
            "context.history.messages" => Self::MESSAGES,
            _ => Self::none(),
        }
    }

    fn of_call(name: &str) -> Self {
        match name {
            "context.project_state" | "project_state" => Self::PROJECT_STATE,
            _ if TOOL_FUNCTIONS.contains(&name) => Self::TOOLS,
            _ => Self::none(),
        }
    }

    /// What a script or a template may read, by the words in it: rather too much than too little.
    pub(crate) fn of_source(source: &str) -> Self {
        let words: Vec<(&str, bool)> = words(source).collect();
        let following = words.iter().skip(1).map(|(word, _)| *word).chain([""]);
        let each = words.iter().zip(following).map(|(&(word, is_bare), next)| {
            match (word, is_bare) {
                // Handed on or gone through as a whole.
                ("context", true) => Self::ALL,
                ("history", true) => Self::TOOLS | Self::MESSAGES,
                (_, false) if is_small(word, next) => Self::none(),
                ("payload" | "event", _) => Self::PAYLOAD,
                ("arguments" | "call", _) => Self::ARGUMENTS,
                ("result", _) => Self::RESULT,
                ("tools", _) => Self::TOOLS,
                ("messages", _) => Self::MESSAGES,
                _ => Self::of_call(word),
            }
        });
        each.fold(Self::none(), Self::bitor)
    }

    /// What the texts of actions may read.
    pub(crate) fn of_actions(actions: &[Action]) -> Self {
        let texts = actions.iter().map(|action| match action {
            Action::NotifySelf { message, .. }
            | Action::Log { message, .. }
            | Action::Deny { message }
            | Action::RequireApproval { message } => of_template(message),
            Action::SetState { value, .. } => of_value(value),
            Action::EmitEvent { payload, .. } => of_value(payload),
        });
        texts.fold(Self::none(), Self::bitor)
    }
}

impl BitOr for Reads {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Functions that look at the tools that were called.
const TOOL_FUNCTIONS: [&str; 5] = [
    "tool_completed",
    "tool_failed",
    "recent_tool_count",
    "time_since_last_tool",
    "session_duration_minutes",
];

/// Whether only a small field is read of an event, a call or a result.
fn is_small(record: &str, field: &str) -> bool {
    match record {
        "event" => ["type", "source", "severity", "timestamp"].contains(&field),
        "call" => field == "tool_name",
        "result" => ["tool_name", "success", "error", "duration_ms"].contains(&field),
        _ => false,
    }
}

/// Text between templates' marks says nothing of what is read.
fn of_template(source: &str) -> Reads {
    if source.contains("{{") || source.contains("{%") {
        Reads::of_source(source)
    } else {
        Reads::none()
    }
}

fn of_value(value: &Value) -> Reads {
    match value {
        Value::String(source) => of_template(source),
        Value::Array(items) => items.iter().map(of_value).fold(Reads::none(), Reads::bitor),
        Value::Object(fields) => fields
            .values()
            .map(of_value)
            .fold(Reads::none(), Reads::bitor),
        _ => Reads::none(),
    }
}

/// The words of a source, each with whether no field of it follows.
fn words(source: &str) -> impl Iterator<Item = (&str, bool)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = source;
    std::iter::from_fn(move || {
        let start = rest.find(is_part)?;
        let word = &rest[start..];
        let end = word.find(|c: char| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        let follows = after
            .strip_prefix('.')
            .is_some_and(|field| field.starts_with(is_part));
        Some((word, !follows))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(expression: &str) -> Reads {
        let trigger = Trigger::OnToolComplete;
        let expr = Expr::compile(expression, schema(trigger)).unwrap();
        Reads::of_expression(&expr, trigger)
    }

    #[test]
    fn an_expression_reads_the_fields_it_names() {
        assert_eq!(of("context.turn.token_usage > 0.8"), Reads::none());
        assert_eq!(of("context.result.success"), Reads::none());
        assert_eq!(of("context.result.result is None"), Reads::RESULT);
        assert_eq!(of("tool_completed('x')"), Reads::TOOLS);
        assert_eq!(of("message_count_above(3)"), Reads::none());
        assert_eq!(of("len(context.history.messages) > 1"), Reads::MESSAGES);
        assert_eq!(of("context.event.payload.get('a')"), Reads::PAYLOAD);
        assert_eq!(
            of("'x' in context.project_state('p')"),
            Reads::PROJECT_STATE
        );
    }

    #[test]
    fn a_source_reads_what_it_mentions() {
        let of = Reads::of_source;
        assert_eq!(of("return context.turn.number > 3"), Reads::none());
        assert_eq!(of("for _, t in context.history.tools do end"), Reads::TOOLS);
        assert_eq!(of("return context.result.tool_name"), Reads::none());
        assert_eq!(of("return context.result.result"), Reads::RESULT);
        assert_eq!(of("local c = context"), Reads::ALL);
        assert_eq!(
            of("return context.project_state('p').x"),
            Reads::PROJECT_STATE
        );
        let history = Reads::TOOLS | Reads::MESSAGES;
        assert_eq!(of("for k, v in context.history do end"), history);
        assert_eq!(of_template("a result, but no template"), Reads::none());
    }
}
