//! Python's `jsonschema` is the reference: both must accept and reject the same values.

use dodona_schema::Validator;
use dodona_testkit::{Chance, Python};
use serde_json::{Map, Value, json};

const PACKAGES: [&str; 1] = ["jsonschema==4.25.1"];

const PROGRAM: &str = r"
import json, sys
from jsonschema import Draft202012Validator
for line in sys.stdin:
    case = json.loads(line)
    validator = Draft202012Validator(case['schema'])
    print(json.dumps([validator.is_valid(value) for value in case['values']]), flush=True)
";

const ROUNDS: u64 = 3_000;

#[test]
fn agrees_with_the_reference_on_generated_schemas() {
    let python = Python::with(&PACKAGES).expect("Python and the package can be installed");
    let mut reference = python.lines(PROGRAM).expect("Python starts");
    let mut chance = Chance::from_seed(Chance::seed());
    let mut accepted = 0_usize;
    let mut total = 0_usize;
    for _ in 0..ROUNDS {
        let schema = root(&mut chance);
        let values: Vec<Value> = (0..12).map(|_| value(&mut chance, 3)).collect();
        let validator = Validator::new(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let ours: Vec<bool> = values
            .iter()
            .map(|value| validator.is_valid(value))
            .collect();
        for (value, valid) in values.iter().zip(&ours) {
            // The two ways to ask must agree with each other.
            assert_eq!(
                validator.validate(value).is_ok(),
                *valid,
                "{schema} {value}"
            );
        }
        let theirs = reference
            .ask(&json!({"schema": schema, "values": values}))
            .expect("the reference answers");
        assert_eq!(
            json!(ours),
            theirs,
            "schema {schema}\nvalues {}",
            json!(values)
        );
        accepted += ours.iter().filter(|valid| **valid).count();
        total += ours.len();
    }
    // Schemas that accept everything or nothing would show nothing.
    assert!(
        accepted > total / 10 && accepted < total * 9 / 10,
        "{accepted} of {total}"
    );
}

/// A schema with two definitions that it may refer to.
fn root(chance: &mut Chance) -> Value {
    let mut schema = object(chance, 3);
    let definitions = json!({"a": object(chance, 1), "b": object(chance, 1)});
    schema.insert("$defs".to_owned(), definitions);
    Value::Object(schema)
}

fn schema(chance: &mut Chance, depth: u64) -> Value {
    match chance.below(12) {
        0 => json!(true),
        1 => json!(false),
        // Definitions are compiled without references, so that no cycle arises.
        2 | 3 if depth > 1 => {
            json!({"$ref": if chance.below(2) == 0 { "#/$defs/a" } else { "#/$defs/b" }})
        }
        _ => Value::Object(object(chance, depth)),
    }
}

fn object(chance: &mut Chance, depth: u64) -> Map<String, Value> {
    let mut fields = Map::new();
    for _ in 0..=chance.below(3) {
        let (name, value) = keyword(chance, depth);
        fields.insert(name.to_owned(), value);
    }
    fields
}

fn keyword(chance: &mut Chance, depth: u64) -> (&'static str, Value) {
    if depth > 0 && chance.below(2) == 0 {
        return applicator(chance, depth - 1);
    }
    let small = chance.below(4);
    match chance.below(17) {
        0 => ("type", json!(TYPES[chance.below(7) as usize])),
        1 => {
            let first = chance.below(7) as usize;
            ("type", json!([TYPES[first], TYPES[(first + 2) % 7]]))
        }
        2 => (
            "enum",
            json!([value(chance, 1), value(chance, 1), value(chance, 1)]),
        ),
        3 => ("const", value(chance, 1)),
        4 => ("minimum", number(chance)),
        5 => ("maximum", number(chance)),
        6 => ("exclusiveMinimum", number(chance)),
        7 => ("exclusiveMaximum", number(chance)),
        8 => ("multipleOf", json!(small + 1)),
        9 => ("minLength", json!(small)),
        10 => ("maxLength", json!(small)),
        // `\w` is left out: Python's is not ASCII, unlike the dialect of the specification.
        11 => (
            "pattern",
            json!(["^a", "b$", "^[a-c]+$", r"\d", "^[a-z]*$"][chance.below(5) as usize]),
        ),
        12 => ("required", json!([NAMES[chance.below(4) as usize]])),
        13 => ("minProperties", json!(small)),
        14 => ("maxItems", json!(small)),
        15 => ("uniqueItems", json!(chance.below(2) == 0)),
        _ => (
            "dependentRequired",
            json!({NAMES[chance.below(4) as usize]: [NAMES[chance.below(4) as usize]]}),
        ),
    }
}

fn applicator(chance: &mut Chance, depth: u64) -> (&'static str, Value) {
    let name = NAMES[chance.below(4) as usize];
    match chance.below(18) {
        0..=3 => {
            let other = NAMES[chance.below(4) as usize];
            (
                "properties",
                json!({name: schema(chance, depth), other: schema(chance, depth)}),
            )
        }
        4 => ("patternProperties", json!({"^[ab]": schema(chance, depth)})),
        5 => ("additionalProperties", schema(chance, depth)),
        6 => ("propertyNames", schema(chance, depth)),
        7 => ("items", schema(chance, depth)),
        8 => (
            "prefixItems",
            json!([schema(chance, depth), schema(chance, depth)]),
        ),
        9 => ("contains", schema(chance, depth)),
        10 => (
            "allOf",
            json!([schema(chance, depth), schema(chance, depth)]),
        ),
        11 => (
            "anyOf",
            json!([schema(chance, depth), schema(chance, depth)]),
        ),
        12 => (
            "oneOf",
            json!([schema(chance, depth), schema(chance, depth)]),
        ),
        13 => ("not", schema(chance, depth)),
        14 => ("if", schema(chance, depth)),
        15 => ("dependentSchemas", json!({name: schema(chance, depth)})),
        16 => ("unevaluatedProperties", schema(chance, depth)),
        _ => ("unevaluatedItems", schema(chance, depth)),
    }
}

const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];
const NAMES: [&str; 4] = ["a", "b", "c", "abc"];

fn number(chance: &mut Chance) -> Value {
    let whole = i64::try_from(chance.below(7)).unwrap_or(0) - 2;
    match chance.below(3) {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        0 => json!(whole as f64 + 0.5),
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        1 => json!(whole as f64),
        _ => json!(whole),
    }
}

fn value(chance: &mut Chance, depth: u64) -> Value {
    let count = chance.below(4);
    match chance.below(if depth == 0 { 5 } else { 11 }) {
        0 => Value::Null,
        1 => json!(chance.below(2) == 0),
        2 | 3 => number(chance),
        4 => json!(["", "a", "ab", "abc", "b1", "ä", "9"][chance.below(7) as usize]),
        5..=7 => (0..count).map(|_| value(chance, depth - 1)).collect(),
        _ => {
            let field = |_| {
                let name = NAMES[chance.below(4) as usize].to_owned();
                (name, value(chance, depth - 1))
            };
            Value::Object((0..count).map(field).collect())
        }
    }
}
