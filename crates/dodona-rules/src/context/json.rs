//! The context as JSON, for tests of rules and for display.

use std::sync::Arc;

use serde_json::{Value, json};

use super::facts::Facts;
use super::template::Page;
use super::{ProjectStates, RuleContext, empty};

impl RuleContext {
    /// Creates a context from the values under `context.`, including `state`, and the plugin's settings. Missing
    /// values have their default: zero, empty, or None. `project_state` has the states of projects by id.
    ///
    /// # Errors
    ///
    /// If a name is unknown or a value has the wrong type.
    pub fn from_json(context: &Value, settings: &Value) -> Result<Self, String> {
        let mut rest = match context {
            Value::Object(fields) => fields.clone(),
            Value::Null => serde_json::Map::new(),
            _ => return Err("the context must be a table".to_owned()),
        };
        let state = rest.remove("state").unwrap_or_else(|| json!({}));
        let settings = match settings {
            Value::Null => empty(),
            other => Arc::new(other.clone()),
        };
        let projects = rest.remove("project_state").unwrap_or_else(|| json!({}));
        let is_table = |value: &Value| value.is_object();
        for (name, is_valid) in [
            ("state", is_table(&state)),
            ("settings", is_table(&settings)),
            ("project_state", is_table(&projects)),
        ] {
            if !is_valid {
                return Err(format!("`{name}` must be a table"));
            }
        }
        let mut states = projects.as_object().into_iter().flatten();
        if let Some((project, _)) = states.find(|(_, state)| !is_table(state)) {
            return Err(format!("`project_state.{project}` must be a table"));
        }
        let facts: Facts =
            serde_json::from_value(Value::Object(rest)).map_err(|error| error.to_string())?;
        facts.shapes()?;
        let mut context = Self::new(Arc::new(facts)).of_plugin(Arc::new(state), settings);
        context.project_states = ProjectStates::Given(Arc::new(projects));
        Ok(context)
    }

    /// The whole as JSON: `context` and `settings`.
    pub fn to_json(&self) -> Value {
        dodona_template::Object::to_json(&Page(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_filled_and_reads_back() {
        let given =
            json!({"turn": {"token_usage": 0.9}, "state": {"n": 1}, "result": {"tool_name": "x"}});
        let context = RuleContext::from_json(&given, &json!({"most": 3})).unwrap();
        let json = context.to_json();
        assert_eq!(json["context"]["turn"]["token_usage"], 0.9);
        assert_eq!(json["context"]["turn"]["number"], 0);
        assert_eq!(json["context"]["state"]["n"], 1);
        assert_eq!(json["context"]["result"]["tool_name"], "x");
        assert_eq!(json["context"]["call"], Value::Null);
        assert_eq!(json["settings"]["most"], 3);
    }

    #[test]
    fn what_no_context_has_is_refused() {
        for (given, why) in [
            (json!({"turns": {}}), "unknown field `turns`"),
            (json!({"turn": {"tokens": 1}}), "unknown field `tokens`"),
            (json!({"turn": {"number": "one"}}), "invalid type"),
            (json!({"state": []}), "`state` must be a table"),
            (json!({"history": {"tools": {}}}), "lists"),
            (
                json!({"event": {"payload": 1}}),
                "`event.payload` must be a table",
            ),
            (json!([]), "must be a table"),
        ] {
            let error = RuleContext::from_json(&given, &Value::Null).unwrap_err();
            assert!(error.contains(why), "{given}: {error}");
        }
    }
}
