//! Explaining the value of a condition.

use dodona_expr::{Expr, Term, TermOutcome};
use dodona_script::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compile::{CompiledCondition, CompiledRule};
use crate::context::RuleContext;
use crate::evaluate::{Matched, matches};

/// Maximum length of a term's value within a line.
const SHORT: usize = 60;

/// The explanation of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionExplained {
    /// The value of the condition; absent if it failed.
    pub holds: Option<bool>,
    /// One line: the condition, the condition with values, and its value.
    pub line: String,
    /// Every term with its value, one per line; sub-terms are indented below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The same as data: `text`, `span`, `value` or `error` or `reached: false`, and `terms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Value>,
    /// The return value of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Value>,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Explains the condition of a rule in a context.
pub fn condition(
    rule: &CompiledRule,
    context: &RuleContext,
    scripts: &Engine,
) -> ConditionExplained {
    match rule.condition() {
        CompiledCondition::Expression(expr) => expression(expr, context),
        CompiledCondition::Script(script) => {
            let path = script.name().to_owned();
            let asked = matches(rule, context, scripts);
            let returned = match &asked {
                Ok(Matched::No) => Some(Value::Bool(false)),
                Ok(Matched::Yes) => Some(Value::Bool(true)),
                Ok(Matched::Actions(actions)) => Some(Value::Array(actions.clone())),
                Err(_) => None,
            };
            let error = asked.as_ref().err().map(|error| error.message.clone());
            let came_to = match (&returned, &error) {
                (Some(value), _) => value.to_string(),
                (None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
            };
            ConditionExplained {
                holds: asked.as_ref().ok().map(Matched::holds),
                line: format!("{path}   →   {came_to}"),
                tree: None,
                terms: None,
                returned,
                error,
            }
        }
    }
}

fn expression(expr: &Expr, context: &RuleContext) -> ConditionExplained {
    let explained = expr.explain(context);
    let source = one_line(expr.source());
    let (holds, came_to, error) = match &explained.result {
        Ok(value) => (Some(value.is_truthy()), value.short_repr(), None),
        Err(error) => (None, format!("error: {error}"), Some(error.to_string())),
    };
    let with_values = one_line(&with_values(expr.source(), &explained.root));
    let line = if with_values == source || with_values == came_to {
        format!("{source}   →   {came_to}")
    } else {
        format!("{source}   →   {with_values}   →   {came_to}")
    };
    ConditionExplained {
        holds,
        line,
        tree: Some(explained.root.to_string()),
        terms: Some(explained.root.to_json()),
        returned: None,
        error,
    }
}

/// The source with names replaced by their values, as far as they were evaluated.
fn with_values(source: &str, root: &Term<'_>) -> String {
    let mut places = Vec::new();
    gather(root, true, &mut places);
    places.sort_by_key(|(start, _, _)| *start);
    let (mut text, mut from) = (String::new(), 0);
    for (start, end, value) in places {
        // A term that was moved by the optimiser may lie within another.
        if start < from {
            continue;
        }
        let (Some(before), true) = (source.get(from..start), end >= start) else {
            continue;
        };
        text.push_str(before);
        text.push_str(&value);
        from = end;
    }
    text.push_str(source.get(from..).unwrap_or_default());
    text
}

fn gather(term: &Term<'_>, is_root: bool, places: &mut Vec<(usize, usize, String)>) {
    let loops = term.terms.iter().any(|inner| inner.times > 1);
    if !term.terms.is_empty() && !loops {
        for inner in &term.terms {
            gather(inner, false, places);
        }
        return;
    }
    // The whole expression is shown as its value.
    if is_root {
        return;
    }
    if let TermOutcome::Value(value) = &term.outcome {
        let repr = value.short_repr();
        if repr.chars().count() <= SHORT {
            places.push((term.span.start, term.span.end, repr));
        }
    }
}

/// A text on one line, without what only lays it out.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::context::schema;
    use crate::format::Trigger;

    fn line(source: &str, context: &Value) -> String {
        let expr = Expr::compile(source, schema(Trigger::OnTurnStart)).unwrap();
        let context = RuleContext::from_json(context, &json!({})).unwrap();
        expression(&expr, &context).line
    }

    #[test]
    fn a_line_has_the_condition_its_values_and_what_comes_of_it() {
        let context = json!({"turn": {"token_usage": 0.41, "number": 3}});
        for (source, expected) in [
            (
                "context.turn.token_usage > 0.8",
                "context.turn.token_usage > 0.8   →   0.41 > 0.8   →   False",
            ),
            (
                "context.turn.number > 2 and\\\n  context.turn.token_usage > 0.4",
                "context.turn.number > 2 and\\ context.turn.token_usage > 0.4   →   3 > 2 and\\ 0.41 > 0.4   →   True",
            ),
            ("True", "True   →   True"),
            ("tool_failed('x')", "tool_failed('x')   →   False"),
            (
                "any(n > 2 for n in [1, 2, 3]) and context.turn.number == 3",
                "any(n > 2 for n in [1, 2, 3]) and context.turn.number == 3   →   True and 3 == 3   →   True",
            ),
        ] {
            assert_eq!(line(source, &context), expected);
        }
    }

    #[test]
    fn what_was_not_looked_at_keeps_its_name() {
        let context = json!({"turn": {"number": 1}});
        assert_eq!(
            line(
                "context.turn.number > 2 and context.turn.token_usage > 0.4",
                &context
            ),
            "context.turn.number > 2 and context.turn.token_usage > 0.4   →   \
             1 > 2 and context.turn.token_usage > 0.4   →   False"
        );
    }
}
