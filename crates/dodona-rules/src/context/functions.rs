//! Functions for conditions, scripts and templates.

use jiff::Timestamp;
use serde_json::Value;

use super::facts::{Facts, History};

/// A function of the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    ToolCompleted,
    ToolFailed,
    FailureCount,
    ContextAboveThreshold,
    MessageCountAbove,
    RecentToolCount,
    TimeSinceLastTool,
    SessionDurationMinutes,
    /// A function of the vocabulary without implementation.
    Unknown,
}

/// The arguments of a function call.
pub(super) trait Arguments {
    fn text(&self, index: usize) -> Option<&str>;
    fn number(&self, index: usize) -> Option<f64>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl From<Answer> for Value {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Bool(value) => Self::from(value),
            Answer::Int(value) => Self::from(value),
            Answer::Float(value) => Self::from(value),
        }
    }
}

impl Arguments for &[Value] {
    fn text(&self, index: usize) -> Option<&str> {
        self.get(index)?.as_str()
    }

    fn number(&self, index: usize) -> Option<f64> {
        self.get(index)?.as_f64()
    }
}

impl Function {
    /// Functions without receiver, by name.
    pub(super) const GLOBAL: [(&'static str, Self); 8] = [
        ("tool_completed", Self::ToolCompleted),
        ("tool_failed", Self::ToolFailed),
        ("failure_count", Self::FailureCount),
        ("context_above_threshold", Self::ContextAboveThreshold),
        ("message_count_above", Self::MessageCountAbove),
        ("recent_tool_count", Self::RecentToolCount),
        ("time_since_last_tool", Self::TimeSinceLastTool),
        ("session_duration_minutes", Self::SessionDurationMinutes),
    ];

    /// The function of a path of the vocabulary.
    pub(super) fn of_path(path: &str) -> Self {
        if path == "context.history.get_failures_for_tool" {
            return Self::FailureCount;
        }
        let found = Self::GLOBAL.iter().find(|(name, _)| *name == path);
        found.map_or(Self::Unknown, |(_, function)| *function)
    }

    fn name(self) -> &'static str {
        let found = Self::GLOBAL.iter().find(|(_, function)| *function == self);
        found.map_or("this function", |(name, _)| name)
    }

    pub(super) fn run(self, facts: &Facts, given: &impl Arguments) -> Result<Answer, String> {
        let name = self.name();
        let text = |index: usize| {
            let text = given.text(index);
            text.ok_or_else(|| format!("`{name}` needs a text as argument {}", index + 1))
        };
        let number = |index: usize| {
            let number = given.number(index);
            number.ok_or_else(|| format!("`{name}` needs a number as argument {}", index + 1))
        };
        let history = &facts.history;
        Ok(match self {
            Self::ToolCompleted => {
                let tool = text(0)?;
                Answer::Bool(history.calls(tool).any(|call| call["success"] == true))
            }
            Self::ToolFailed => {
                let tool = text(0)?;
                let failed = history.calls(tool).any(|call| call["success"] == false);
                Answer::Bool(failed || history.failures_of(tool) > 0)
            }
            Self::FailureCount => Answer::Int(history.failures_of(text(0)?)),
            Self::ContextAboveThreshold => Answer::Bool(facts.turn.context_usage > number(0)?),
            Self::MessageCountAbove => {
                #[expect(clippy::cast_precision_loss, reason = "no conversation is that long")]
                let count = history.count_messages() as f64;
                Answer::Bool(count > number(0)?)
            }
            Self::RecentToolCount => {
                let (tool, last) = (text(0)?, number(1)?);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a cast of a float saturates, and a negative count counts nothing"
                )]
                let recent = history.tools().iter().rev().take(last as usize);
                let count = recent.filter(|call| call["name"] == tool).count();
                Answer::Int(i64::try_from(count).unwrap_or(i64::MAX))
            }
            Self::TimeSinceLastTool => {
                let last = history.tools().last().and_then(time);
                Answer::Float(facts.seconds_since(last))
            }
            Self::SessionDurationMinutes => {
                let first = history.tools().first().and_then(time);
                let began = facts.session_started.or(first);
                Answer::Float(facts.seconds_since(began) / 60.0)
            }
            Self::Unknown => return Err("there is no such function".to_owned()),
        })
    }
}

pub(super) fn failures_for(history: &History, arguments: &[Value]) -> Result<Value, String> {
    let tool = arguments.first().and_then(Value::as_str);
    tool.map(|tool| Value::from(history.failures_of(tool)))
        .ok_or_else(|| "`get_failures_for_tool` needs a text as argument 1".to_owned())
}

/// The project that `context.project_state(project)` names.
pub(super) fn project_argument(given: &impl Arguments) -> Result<&str, String> {
    let project = given.text(0);
    project.ok_or_else(|| "`project_state` needs the id of a project as argument 1".to_owned())
}

impl History {
    fn tools(&self) -> &[Value] {
        self.tools.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn calls<'h>(&'h self, tool: &'h str) -> impl Iterator<Item = &'h Value> {
        self.tools().iter().filter(move |call| call["name"] == tool)
    }

    fn failures_of(&self, tool: &str) -> i64 {
        self.failures[tool].as_i64().unwrap_or_default()
    }

    fn count_messages(&self) -> i64 {
        let shown = self.messages.as_array().map_or(0, Vec::len);
        let shown = i64::try_from(shown).unwrap_or(i64::MAX);
        self.message_count.max(shown)
    }
}

fn time(call: &Value) -> Option<Timestamp> {
    call["timestamp"].as_str()?.parse().ok()
}

impl Facts {
    /// Seconds from the start of the session to the event. Zero if one of them is unknown: a context has no other
    /// clock.
    fn seconds_since(&self, then: Option<Timestamp>) -> f64 {
        let now = self.event.as_ref().and_then(super::EventFacts::time);
        match (now, then) {
            (Some(now), Some(then)) => now.duration_since(then).as_secs_f64().max(0.0),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::RuleContext;
    use super::*;

    #[test]
    fn functions_answer_from_the_context() {
        let tool = |name: &str, success: bool, at: &str| json!({ "name": name, "success": success, "timestamp": at });
        let context = json!({
            "turn": { "context_usage": 0.5 },
            "event": { "timestamp": "2026-01-01T00:10:30Z" },
            "history": {
                "messages": [{}, {}],
                "tools": [tool("a", true, "2026-01-01T00:00:00Z"), tool("b", false, "2026-01-01T00:10:00Z")],
                "failures": { "b": 2 },
            },
        });
        let context = RuleContext::from_json(&context, &json!({})).unwrap();
        for (name, arguments, expected) in [
            ("tool_completed", json!(["a"]), json!(true)),
            ("tool_completed", json!(["b"]), json!(false)),
            ("tool_failed", json!(["b"]), json!(true)),
            ("failure_count", json!(["b"]), json!(2)),
            ("failure_count", json!(["x"]), json!(0)),
            ("context_above_threshold", json!([0.5]), json!(false)),
            ("message_count_above", json!([1]), json!(true)),
            ("recent_tool_count", json!(["a", 1]), json!(0)),
            ("recent_tool_count", json!(["a", 9]), json!(1)),
            ("time_since_last_tool", json!([]), json!(30.0)),
            ("session_duration_minutes", json!([]), json!(10.5)),
        ] {
            let arguments = arguments.as_array().cloned().unwrap_or_default();
            let answer = Function::of_path(name).run(context.facts(), &&arguments[..]);
            assert_eq!(answer.map(Value::from), Ok(expected), "{name}");
        }
        let none: &[Value] = &[];
        assert!(Function::FailureCount.run(context.facts(), &none).is_err());
    }
}
