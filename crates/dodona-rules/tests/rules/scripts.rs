//! A script that an event passes by says what it would have said.

use std::sync::Arc;

use dodona_rules::load::{RuleSet, load_text};
use dodona_rules::{
    CompiledRule, Limiter, Origin, Outcome, RuleContext, Scope, Trigger, TriggerEvaluation,
    evaluate,
};
use dodona_script::Engine;
use serde_json::{Value, json};

/// Beginnings of many forms: early exits, first terms, and what only looks like them.
const SCRIPTS: [&str; 16] = [
    "return context.turn.token_usage > 0.5",
    "return context.turn.token_usage >= 0.5 and context.turn.number > 3",
    "return context.turn.token_usage > 0.5 or context.turn.number > 3",
    "return context.turn.token_usage < 0.5 and { type = 'log', message = 'low' }",
    "if context.turn.token_usage <= 0.5 then return false end\nreturn true",
    "if context.turn.number < 4 then return end\nerror('four')",
    "if context.turn.number > 3 then return nil end\nreturn context.turn.token_usage == 0.5",
    "if context.result.tool_name ~= 'vault_search' then return false end\nreturn true",
    "if context.result.tool_name == 'vault_search' then return false end\nreturn true",
    "return context.result.tool_name == 'vault_search' and context.result.success",
    "return context.result.duration_ms > 2",
    "if context.result.duration_ms >= 2 then return true end",
    "return context.event.type == 'tool.call.success' and context.turn.number > 100",
    "if context.history.total_failures < 1 then return false end\nreturn context.nothing.here",
    "return context.result.success > 0",
    "return context.user.id == 'alice' and not context.call",
];

fn rule(index: usize, script: &str) -> Arc<CompiledRule> {
    let text = format!(
        "[rule]\nid = \"r{index}\"\ntrigger = \"on_tool_complete\"\n[condition]\nscript = \"a.lua\"\n[action]\ntype = \"log\"\n"
    );
    let origin = Origin {
        scope: Scope::User,
        path: format!("r{index}.toml"),
    };
    let loaded = load_text(origin, &text, &|_| Ok(script.to_owned()));
    loaded
        .rule
        .unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

/// Events around the places where the scripts change their minds, and some that they do not expect.
fn contexts() -> Vec<Value> {
    let mut contexts = vec![json!({})];
    let results = [
        Value::Null,
        json!({ "tool_name": "vault_search", "success": true, "duration_ms": 2.0 }),
        json!({ "tool_name": "other", "duration_ms": 2.5 }),
    ];
    for usage in [0.0, 0.49, 0.5, 0.51] {
        for number in [0, 3, 4, i64::MAX] {
            for result in &results {
                contexts.push(json!({
                    "turn": { "token_usage": usage, "number": number },
                    "history": { "total_failures": number % 2 },
                    "user": { "id": if number == 3 { "alice" } else { "bob" } },
                    "event": { "type": "tool.call.success" },
                    "result": result,
                }));
            }
        }
    }
    contexts
}

#[test]
fn an_event_comes_to_the_same_whether_scripts_are_run_or_passed_by() {
    let rules: Vec<_> = SCRIPTS
        .iter()
        .enumerate()
        .map(|(index, script)| rule(index, script))
        .collect();
    let (set, scripts) = (RuleSet::new(rules.clone()), Engine::new(1));
    let (mut fired, mut failed) = (0, 0);
    for document in contexts() {
        let context = RuleContext::from_json(&document, &json!({})).unwrap();
        let round = TriggerEvaluation {
            rules: set.at(Trigger::OnToolComplete),
            contexts: std::slice::from_ref(&context),
            limiter: &Limiter::new(),
            scripts: &scripts,
            is_disabled: &|_| false,
        };
        let answers = round.evaluate();
        for rule in &rules {
            let alone = evaluate(rule, &context, &scripts);
            let asked = answers.iter().find(|answer| answer.rule.key == rule.key);
            let asked = asked.map_or_else(Outcome::default, |answer| answer.outcome.clone());
            assert_eq!(asked, alone, "{} {document}", rule.label);
            fired += usize::from(alone.fired);
            failed += usize::from(alone.error.is_some());
        }
    }
    assert!(fired > 50 && failed > 50, "{fired} fired, {failed} failed");
}
