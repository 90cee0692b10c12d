//! Schemas that come from outside must neither hang nor abort the process.

use dodona_schema::Validator;
use serde_json::{Value, json};

fn error(schema: &Value) -> String {
    Validator::new(schema).unwrap_err().to_string()
}

#[test]
fn rejects_references_without_end() {
    assert_eq!(
        error(&json!({"$ref": "#"})),
        "the schema refers to itself without end"
    );
    let mutual = json!({
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
        "properties": {"x": {"$ref": "#/$defs/a"}}
    });
    assert!(error(&mutual).contains("without end"));
}

#[test]
fn accepts_recursion_that_descends() {
    let tree = json!({
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": false
    });
    let validator = Validator::new(&tree).unwrap();
    assert!(validator.is_valid(&json!({"children": [{"children": []}]})));
    let violation = validator
        .validate(&json!({"children": [{"child": 1}]}))
        .unwrap_err();
    assert_eq!(violation.path, "/children/0");
    assert_eq!(
        violation.to_string(),
        "Additional properties are not allowed ('child' was unexpected)"
    );
}

#[test]
fn alternatives_that_multiply_are_rejected_in_bounded_work() {
    // Each level tries the next one twice: 2^60 paths without a bound.
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(format!("l{level}"), json!({"oneOf": [next, next]}));
    }
    definitions.insert("l60".to_owned(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/l0", "$defs": definitions});
    let validator = Validator::new(&schema).unwrap();
    assert!(!validator.is_valid(&json!("x")));
    assert!(validator.validate(&json!("x")).is_err());
    // Running out of steps below a `not` must not turn into acceptance.
    let schema = json!({"not": schema["$ref"].as_str().map(|r| json!({"$ref": r})), "$defs": schema["$defs"]});
    assert!(!Validator::new(&schema).unwrap().is_valid(&json!("x")));
}

#[test]
fn rejects_schemas_that_are_too_deep_or_too_large() {
    let mut deep = json!({});
    for _ in 0..1_000 {
        deep = json!({"not": deep});
    }
    assert!(error(&deep).contains("nested deeper than 200"));
    // Dropped level by level: dropping a deep value recurses.
    while let Some(inner) = deep.get_mut("not").map(Value::take) {
        deep = inner;
    }
    let wide: Vec<Value> = (0..30_000).map(|_| json!({})).collect();
    assert!(error(&json!({"allOf": wide})).contains("more than 20000 subschemas"));
}

#[test]
fn names_the_keyword_that_is_wrong() {
    let cases = [
        (json!({"type": "strng"}), "/type: unknown type \"strng\""),
        (
            json!({"properties": {"a/b": {"minimum": "1"}}}),
            "/properties/a~1b/minimum: must be a number",
        ),
        (
            json!({"$ref": "#/$defs/nope"}),
            "/$ref: cannot resolve `#/$defs/nope` within this schema",
        ),
        (
            json!({"$ref": "https://example.org/x"}),
            "/$ref: cannot resolve `https://example.org/x` within this schema",
        ),
        (
            json!({"required": "x"}),
            "/required: must be an array of strings",
        ),
        (json!(5), "a schema must be an object or a boolean"),
    ];
    for (schema, message) in cases {
        assert_eq!(error(&schema), message);
    }
}

#[test]
fn reports_several_violations_up_to_the_limit() {
    let schema = json!({
        "type": "object",
        "required": ["a", "b"],
        "properties": {"n": {"type": "array", "items": {"type": "integer", "maximum": 3}}}
    });
    let validator = Validator::new(&schema).unwrap();
    let value = json!({"n": ["x", 9, 1]});
    let all: Vec<String> = validator
        .violations(&value, 10)
        .iter()
        .map(|violation| format!("{} {violation}", violation.path))
        .collect();
    assert_eq!(
        all,
        [
            " \"a\" is a required property",
            " \"b\" is a required property",
            "/n/0 \"x\" is not of type \"integer\"",
            "/n/1 9 is greater than the maximum of 3",
        ]
    );
    assert_eq!(validator.violations(&value, 2).len(), 2);
}
