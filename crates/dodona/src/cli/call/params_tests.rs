//! What pairs become, and what is said about those that become nothing.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "text": {"type": "string"},
            "to": {"type": "integer", "minimum": 0, "maximum": 9},
            "share": {"type": ["number", "null"]},
            "dry": {"type": "boolean"},
            "level": {"anyOf": [{"$ref": "#/$defs/Level"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "where": {"$ref": "#/$defs/Where"},
            "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": true,
            "a.b": {"type": "string"}
        },
        "required": ["text"],
        "$defs": {
            "Level": {"oneOf": [{"const": "low"}, {"const": "high"}]},
            "Where": {"type": "object", "properties": {
                "path": {"type": "string"},
                "line": {"type": "integer"}
            }}
        }
    })
}

fn pairs(pairs: &[&str]) -> Result<Value, String> {
    let pairs: Vec<String> = pairs.iter().map(|&pair| pair.to_owned()).collect();
    assemble(&schema(), &pairs).map_err(|error| format!("{error} / {}", error.hint("x.y")))
}

#[track_caller]
fn check(given: &[&str], expected: Value) {
    assert_eq!(pairs(given), Ok(expected));
}

#[track_caller]
fn refused(given: &[&str], expected: &str) {
    assert_eq!(pairs(given), Err(expected.to_owned()));
}

#[test]
fn values_are_what_the_schema_says() {
    check(
        &["text=5", "to=5", "share=.5", "dry=true", "level=low"],
        json!({"text": "5", "to": 5, "share": 0.5, "dry": true, "level": "low"}),
    );
    check(&["share=null"], json!({"share": null}));
    check(&["share=3"], json!({"share": 3}));
    check(&["text="], json!({"text": ""}));
    check(&["text=a=b"], json!({"text": "a=b"}));
    check(&["any=5"], json!({"any": 5}));
    check(&["any=five"], json!({"any": "five"}));
}

#[test]
fn lists_are_repeated_or_json() {
    check(&["tags=a", "tags=b"], json!({"tags": ["a", "b"]}));
    check(&["tags=[a]"], json!({"tags": ["[a]"]}));
    check(&["ids=[1,2]", "ids=3"], json!({"ids": [1, 2, 3]}));
}

#[test]
fn keys_reach_into_objects() {
    check(
        &["where.path=a.md", "where.line=3"],
        json!({"where": {"path": "a.md", "line": 3}}),
    );
    check(&["any.x=1"], json!({"any": {"x": 1}}));
    check(&["labels.x=1"], json!({"labels": {"x": 1}}));
    check(&["a.b=1"], json!({"a.b": "1"}));
    check(&[r#"where={"line": 1}"#], json!({"where": {"line": 1}}));
}

#[test]
fn json_is_taken_as_it_is() {
    check(
        &["text:=7", r#"where:={"line":null}"#],
        json!({"text": 7, "where": {"line": null}}),
    );
    refused(
        &["text:=hello"],
        "`text`: expected value at line 1 column 1 / after `:=` comes JSON; text is written with `=`",
    );
}

#[test]
fn what_does_not_fit_is_told_with_its_key() {
    refused(
        &["to=five"],
        "`to`: expected integer up to 9, got `five` / run `dodona methods x.y` to see what it takes",
    );
    refused(
        &["level=mid"],
        "`level`: expected one of low, high, got `mid` / run `dodona methods x.y` to see what it takes",
    );
    refused(
        &["dry=yes"],
        "`dry`: expected true or false, got `yes` / run `dodona methods x.y` to see what it takes",
    );
}

#[test]
fn unknown_keys_are_told_with_the_nearest() {
    refused(
        &["txet=a"],
        "unknown parameter `txet` / did you mean `text`?",
    );
    refused(
        &["where.pth=a"],
        "unknown parameter `where.pth` / did you mean `where.path`?",
    );
    refused(
        &["elephant=a"],
        "unknown parameter `elephant` / x.y takes text, to, share, dry, level, tags, ids, \
         where, labels, any, a.b",
    );
}

#[test]
fn one_value_is_given_once() {
    refused(
        &["to=1", "to=2"],
        "`to` is given twice / run `dodona methods x.y` to see what it takes",
    );
    refused(
        &["any=1", "any.x=1"],
        "`any.x` is given twice / run `dodona methods x.y` to see what it takes",
    );
    refused(
        &["hello"],
        "`hello` is not a parameter / write `text=hello`",
    );
    refused(&["=1"], "`=1` is not a parameter / write `text==1`");
}

proptest! {
    #[test]
    fn no_argument_makes_it_panic(given in proptest::collection::vec(".{0,12}|[a-z.]{1,6}:?=.{0,6}", 0..4)) {
        let _ = assemble(&schema(), &given);
        let _ = assemble(&json!(true), &given);
    }
}
