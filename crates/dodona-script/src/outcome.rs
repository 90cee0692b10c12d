//! What a script decided.

use serde_json::Value as Json;

use crate::error::{ErrorKind, ScriptError};

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Whether the script's condition holds.
    pub matched: bool,
    /// What to do, if the script says it itself; empty if it left that to whoever asked.
    pub actions: Vec<Json>,
    /// What the script returned.
    pub value: Json,
}

impl Outcome {
    /// `nil` and `false` do not match, `true` does, a table is an action and a list of tables are
    /// several. An empty table is an empty list: there is nothing to do.
    pub(crate) fn of(value: Json) -> Result<Self, ScriptError> {
        let actions = match &value {
            Json::Null | Json::Bool(false) => None,
            Json::Bool(true) => Some(Vec::new()),
            Json::Object(map) if map.is_empty() => None,
            Json::Object(_) => Some(vec![value.clone()]),
            Json::Array(items) if items.iter().all(Json::is_object) => Some(items.clone()),
            Json::Array(_) => return Err(wrong("a list of something else than tables")),
            Json::Number(_) => return Err(wrong("a number")),
            Json::String(_) => return Err(wrong("a text")),
        };
        Ok(Self {
            matched: actions.is_some(),
            actions: actions.unwrap_or_default(),
            value,
        })
    }
}

fn wrong(what: &str) -> ScriptError {
    let message = format!("a script returns nil, a truth value, a table or a list, and not {what}");
    ScriptError::new(ErrorKind::Result, message)
}
