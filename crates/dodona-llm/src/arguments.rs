//! The arguments of tool calls, which models write as text.

use serde_json::{Value, json};

/// What a model wrote, as a value; a string that holds it where it is no JSON.
pub(crate) fn parse(text: &str) -> Value {
    match text.trim() {
        // A tool without parameters is often called with nothing.
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

/// The same on its way back. Providers take nothing but an object, so whatever else a model
/// wrote is shown to it within one.
pub(crate) fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        other => json!({ "not_an_object": other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_arguments_are_kept_and_go_back_as_an_object() {
        assert_eq!(parse(" "), json!({}));
        assert_eq!(parse("{\"a\": 1}"), json!({ "a": 1 }));
        assert_eq!(parse("{\"a\": "), json!("{\"a\":"));
        assert_eq!(as_object(&json!({ "a": 1 })), json!({ "a": 1 }));
        let back = json!({ "not_an_object": "{\"a\":" });
        assert_eq!(as_object(&json!("{\"a\":")), back);
    }
}
