//! Validation of untrusted parameters.

use dodona_plugin::reading::nearest;
use dodona_proto::{CallError, ErrorCode};
use dodona_schema::{Validator, Violation};
use serde_json::{Value, json};

use crate::config::LimitsConfig;

/// How many problems one error reports.
const MAX_PROBLEMS: usize = 5;

/// Maximum length of the text of one problem.
const MAX_PROBLEM_LEN: usize = 200;

/// Rejects parameters that are too large, nested too deeply or do not match the schema. The error
/// reports up to five problems at once, each with its field.
pub(crate) fn check_params(
    params: &Value,
    schema: &Value,
    validator: &Validator,
    limits: &LimitsConfig,
) -> Result<(), CallError> {
    check_size(params, limits)?;
    if validator.is_valid(params) {
        return Ok(());
    }
    let problems: Vec<(String, String)> = validator
        .violations(params, MAX_PROBLEMS)
        .iter()
        .map(|violation| (field_path(violation), describe(violation)))
        .collect();
    let texts: Vec<String> = problems
        .iter()
        .map(|(field, problem)| {
            if field.is_empty() {
                problem.clone()
            } else {
                format!("`{field}`: {problem}")
            }
        })
        .collect();
    let data: Vec<Value> = problems
        .iter()
        .map(|(field, problem)| json!({ "field": field, "problem": problem }))
        .collect();
    let error = CallError::new(
        ErrorCode::InvalidParams,
        format!("invalid parameters: {}", texts.join("; ")),
    );
    Err(error
        .data(json!({ "problems": data }))
        .hint(hint(params, schema)))
}

/// The text of a problem. A long value is left out, so that the expectation stays readable.
fn describe(violation: &Violation) -> String {
    let whole = violation.to_string();
    if whole.len() <= MAX_PROBLEM_LEN {
        return whole;
    }
    let masked = violation.without_value();
    match masked.char_indices().nth(MAX_PROBLEM_LEN) {
        Some((end, _)) => format!("{}…", &masked[..end]),
        None => masked,
    }
}

/// The path of the invalid field, with dots.
fn field_path(violation: &Violation) -> String {
    violation.path.trim_start_matches('/').replace('/', ".")
}

/// Suggests the field that a misspelt one meant, or lists all fields.
fn hint(params: &Value, schema: &Value) -> String {
    let known: Vec<&String> = schema["properties"]
        .as_object()
        .map(|fields| fields.keys().collect())
        .unwrap_or_default();
    let unknown = params
        .as_object()
        .and_then(|fields| fields.keys().find(|name| !known.contains(name)));
    let meant = unknown.and_then(|name| Some((name, nearest(name, known.iter())?)));
    if let Some((name, near)) = meant {
        return format!("did you mean `{near}` instead of `{name}`?");
    }
    match known[..] {
        [] => "the method takes no parameters".to_owned(),
        _ => {
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let names = known.iter().map(|name| {
                if required.contains(&name.as_str()) {
                    format!("{name}*")
                } else {
                    (*name).clone()
                }
            });
            format!(
                "the method takes {} (* required)",
                names.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Walks the value without recursion, because a deeply nested value must not overflow the stack.
fn check_size(params: &Value, limits: &LimitsConfig) -> Result<(), CallError> {
    let mut bytes = 0_usize;
    let mut open: Vec<(&Value, usize)> = vec![(params, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limits.params_depth {
            let message = format!(
                "the parameters are nested more than {} levels deep",
                limits.params_depth
            );
            return Err(CallError::new(ErrorCode::TooDeep, message));
        }
        bytes += match value {
            Value::String(text) => text.len() + 2,
            Value::Array(values) => {
                open.extend(values.iter().map(|value| (value, depth + 1)));
                2 + values.len()
            }
            Value::Object(fields) => {
                open.extend(fields.values().map(|value| (value, depth + 1)));
                2 + fields.keys().map(|name| name.len() + 4).sum::<usize>()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        };
        if bytes > limits.params_bytes {
            let message = format!(
                "the parameters are larger than {} bytes",
                limits.params_bytes
            );
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(schema: &Value, params: &Value) -> CallError {
        let validator = Validator::new(schema).unwrap();
        check_params(params, schema, &validator, &LimitsConfig::default()).unwrap_err()
    }

    #[test]
    fn reports_up_to_five_problems_at_once() {
        let schema = json!({
            "type": "object",
            "properties": {"list": {"type": "array", "items": {"type": "integer"}}},
        });
        let error = refused(
            &schema,
            &json!({"list": ["a", "b", "c", "d", "e", "f", "g"]}),
        );
        let problems = error.data_value().unwrap()["problems"]
            .as_array()
            .unwrap()
            .clone();
        assert_eq!(problems.len(), MAX_PROBLEMS);
        assert_eq!(problems[1]["field"], "list.1");
        assert_eq!(problems[1]["problem"], "\"b\" is not of type \"integer\"");
    }

    #[test]
    fn leaves_out_long_values_and_keeps_the_expectation() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let error = refused(&schema, &json!({"n": "ü".repeat(10_000)}));
        assert_eq!(
            error.message,
            "invalid parameters: `n`: value is not of type \"integer\""
        );
        // A long expectation is truncated at a character boundary.
        let schema = json!({"type": "object", "properties": {"n": {"enum": ["ü".repeat(10_000)]}}});
        let error = refused(&schema, &json!({"n": 1}));
        assert!(error.message.ends_with('…') && error.message.len() < 1_000);
    }

    #[test]
    fn counts_bytes_as_written() {
        let limits = LimitsConfig {
            params_bytes: 1_000,
            params_depth: 4,
            ..LimitsConfig::default()
        };
        let code = |params: Value| check_size(&params, &limits).map_err(|error| error.code);
        assert_eq!(code(json!({"v": "x".repeat(900)})), Ok(()));
        assert_eq!(
            code(json!({"v": "x".repeat(1_000)})),
            Err(ErrorCode::TooLarge)
        );
        assert_eq!(code(json!({"v": vec![1; 200]})), Err(ErrorCode::TooLarge));
        assert_eq!(
            code(json!({"x".repeat(1_000): 1})),
            Err(ErrorCode::TooLarge)
        );
        assert_eq!(code(json!({"a": {"b": {"c": 1}}})), Ok(()));
        assert_eq!(
            code(json!({"a": {"b": {"c": [1]}}})),
            Err(ErrorCode::TooDeep)
        );
    }
}
