//! JSON Schemas: made from types, put into one form, hashed.

use std::fmt::Write;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The schema of a type, references bundled under `$defs`.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// Whether a schema's root is an object, the only form JSON-RPC by name, MCP and models share.
pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type") == Some(&json!("object"))
}

/// Refuses parameters that the schema does not name, unless it says what others may be:
/// a misspelt option should be an error, not silence.
pub(crate) fn close(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("properties").or_insert_with(|| json!({}));
        fields
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
}

/// SHA-256 of a value's canonical JSON (keys sorted, no white space), in hex.
pub fn hash(value: &Value) -> String {
    content_hash(canonical(value).to_string().as_bytes())
}

/// SHA-256 of a file's content, in hex.
pub fn content_hash(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(
                sorted
                    .into_iter()
                    .map(|(k, v)| (k.clone(), canonical(v)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(values) => Value::Array(values.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_the_order_of_keys() {
        assert_eq!(
            hash(&json!({"a": 1, "b": [{"c": 2, "d": 3}]})),
            hash(&json!({"b": [{"d": 3, "c": 2}], "a": 1}))
        );
        assert_ne!(hash(&json!({"a": [1, 2]})), hash(&json!({"a": [2, 1]})));
    }
}
