//! JSON Schemas as models are shown them.

use serde_json::{Map, Value};

/// Keys that say nothing to a model. `additionalProperties` is checked when the tool is called.
const UNUSED: [&str; 5] = ["$schema", "$id", "title", "format", "additionalProperties"];

/// Keys whose values map names to schemas, so that a name is not taken for a keyword.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Keys whose values are data.
const DATA: [&str; 4] = ["default", "enum", "const", "examples"];

/// A schema without what a model cannot use. Calls are validated against the whole schema.
pub(super) fn for_model(schema: &Value) -> Value {
    let mut shown = schema.clone();
    let definitions = shown["$defs"].take();
    if let Some(fields) = shown.as_object_mut() {
        fields.shift_remove("$defs");
    }
    if !inline(&mut shown, &definitions, 0) {
        // A schema that refers to itself stays as it is.
        shown = schema.clone();
    }
    strip(&mut shown);
    shown
}

/// Definitions within definitions that are followed.
const MAX_DEPTH: usize = 8;

/// Puts definitions in the place of references to them. Returns whether that ended.
fn inline(schema: &mut Value, definitions: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match schema {
        Value::Array(list) => list
            .iter_mut()
            .all(|entry| inline(entry, definitions, depth)),
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|text| text.strip_prefix("#/$defs/"));
            let depth = depth + usize::from(name.is_some());
            if let Some(Value::Object(definition)) = name.map(|name| definitions[name].clone()) {
                fields.shift_remove("$ref");
                for (key, value) in definition {
                    // What is said where it is used counts.
                    fields.entry(key).or_insert(value);
                }
            }
            fields
                .values_mut()
                .all(|value| inline(value, definitions, depth))
        }
        _ => true,
    }
}

/// `oneOf` constants becomes `enum`. What each of them means is in the description of the
/// parameter, or clear from its name.
fn enumerate(fields: &mut Map<String, Value>) {
    for key in ["oneOf", "anyOf"] {
        let Some(choices) = fields.get(key).and_then(Value::as_array) else {
            continue;
        };
        let choices = choices.iter().filter(|choice| choice["type"] != "null");
        let values: Option<Vec<Value>> = choices
            .map(constants)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.concat());
        if let Some(values) = values {
            fields.shift_remove(key);
            fields.insert("enum".to_owned(), Value::Array(values));
        }
    }
}

/// The values that a schema allows, if it lists them.
fn constants(choice: &Value) -> Option<Vec<Value>> {
    if let Some(value) = choice.get("const") {
        return Some(vec![value.clone()]);
    }
    choice.get("enum").and_then(Value::as_array).cloned()
}

fn strip(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(strip),
        Value::Object(fields) => {
            let is_unsigned = fields
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with("uint"));
            if is_unsigned && fields.get("minimum").and_then(Value::as_u64) == Some(0) {
                fields.shift_remove("minimum");
            }
            fields.retain(|key, value| !is_unused(key, value));
            if let Some(types) = fields.get_mut("type") {
                strip_null(types);
            }
            for (key, value) in fields.iter_mut() {
                if MAPS.contains(&key.as_str()) {
                    let named = value.as_object_mut().into_iter().flatten();
                    named.for_each(|(_, schema)| strip(schema));
                } else if !DATA.contains(&key.as_str()) {
                    strip(value);
                }
            }
            enumerate(fields);
        }
        _ => {}
    }
}

/// Whether a keyword can go. `additionalProperties` with a schema describes the values of a map.
fn is_unused(key: &str, value: &Value) -> bool {
    let is_unused = UNUSED.contains(&key) && !value.is_object();
    is_unused || (key == "default" && value.is_null())
}

/// `["string", "null"]` says that a parameter is optional, which `required` says too.
fn strip_null(types: &mut Value) {
    if let Value::Array(list) = types {
        list.retain(|entry| entry != "null");
        if let [only] = &list[..] {
            *types = only.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_and_constants_become_lists_of_values() {
        let schema = json!({
            "type": "object",
            "properties": {
                "kinds": { "type": "array", "items": { "$ref": "#/$defs/Kind" }, "description": "Only these." },
                "kind": { "anyOf": [{ "$ref": "#/$defs/Kind" }, { "type": "null" }] },
            },
            "$defs": { "Kind": { "description": "A kind.", "oneOf": [
                { "type": "string", "const": "note", "description": "A note." },
                { "type": "string", "enum": ["code", "text"] },
            ]}},
        });
        let values = json!(["note", "code", "text"]);
        assert_eq!(
            for_model(&schema),
            json!({
                "type": "object",
                "properties": {
                    "kinds": { "type": "array", "items": { "description": "A kind.", "enum": values }, "description": "Only these." },
                    "kind": { "enum": values },
                },
            })
        );
        let endless = json!({ "$ref": "#/$defs/A", "$defs": { "A": { "properties": { "a": { "$ref": "#/$defs/A" } } } } });
        assert_eq!(for_model(&endless), endless);
    }

    #[test]
    fn keywords_go_and_properties_of_the_same_name_stay() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "WriteParams",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "title": { "type": ["string", "null"], "default": null },
                "format": { "type": "string", "title": "Format", "enum": ["title", "format"] },
                "limit": { "type": "integer", "format": "uint32", "minimum": 0, "maximum": 20, "default": 5 },
            },
            "required": ["format"],
        });
        let shown = for_model(&schema);
        assert_eq!(
            shown,
            json!({
                "type": "object",
                "properties": {
                    "title": { "type": "string" },
                    "format": { "type": "string", "enum": ["title", "format"] },
                    "limit": { "type": "integer", "maximum": 20, "default": 5 },
                },
                "required": ["format"],
            })
        );
    }
}
