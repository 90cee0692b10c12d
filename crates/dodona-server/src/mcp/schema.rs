//! Schemas as clients like them.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Formats that JSON Schema knows. Ours also says how wide a number is (`uint32`), at which some
/// clients complain.
const KNOWN: [&str; 9] = [
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "uri",
    "uuid",
    "regex",
    "ipv4",
];

/// The schema of an object, without formats that only we know; `None` if it is of something else.
pub(super) fn object(schema: &Value) -> Option<JsonObject> {
    let mut schema = schema.clone();
    simplify(&mut schema);
    match schema {
        Value::Object(fields) if fields.get("type") == Some(&Value::from("object")) => Some(fields),
        _ => None,
    }
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let foreign =
                |format: &Value| format.as_str().is_some_and(|name| !KNOWN.contains(&name));
            // A property may be named `format`; then what it holds is a schema, and no text.
            if fields.get("format").is_some_and(foreign) {
                fields.remove("format");
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(entries) => entries.iter_mut().for_each(simplify),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn widths_of_numbers_go_and_everything_else_stays() {
        let schema = json!({"type": "object", "properties": {
            "format": {"type": "string"},
            "limit": {"type": "integer", "format": "uint32", "minimum": 1},
            "since": {"type": "string", "format": "date-time"},
        }});
        let simple = Value::Object(object(&schema).unwrap());
        assert_eq!(
            simple,
            json!({"type": "object", "properties": {
                "format": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
                "since": {"type": "string", "format": "date-time"},
            }})
        );
    }

    #[test]
    fn what_is_no_object_has_no_schema_of_one() {
        assert_eq!(object(&json!({"type": "string"})), None);
        assert_eq!(object(&json!(true)), None);
    }
}
