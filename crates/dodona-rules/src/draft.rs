//! A template for a new rule.

/// Returns the text of a new rule: a condition, an action and tests that fit the trigger.
pub fn draft(id: &str, trigger: &str) -> String {
    let (condition, action, fires, does_not) = match trigger {
        "on_tool_call" => (
            "context.call.tool_name == 'vault_write' and str(context.call.arguments.get('path', '')).startswith('published/')",
            "type = \"require_approval\"   # or `deny`; others: notify_self, log, set_state, emit_event\nmessage = \"The agent wants to change {{ context.call.arguments.path }}\"",
            "{ call = { tool_name = \"vault_write\", arguments = { path = \"published/index.md\" } } }",
            "{ call = { tool_name = \"vault_write\", arguments = { path = \"drafts/index.md\" } } }",
        ),
        "on_tool_complete" | "on_tool_failure" => (
            "context.result.tool_name == 'vault_search' and context.result.duration_ms > 1000",
            NOTIFY_RESULT,
            "{ result = { tool_name = \"vault_search\", duration_ms = 2500.0 } }",
            "{ result = { tool_name = \"vault_search\", duration_ms = 20.0 } }",
        ),
        "on_query_start" => (
            "'deploy' in context.event.payload.get('question', '').lower()",
            "type = \"notify_self\"\nmessage = \"Deployments are described in docs/deploy.md.\"\ncategory = \"reminder\"          # info, warning, error, reminder\ndeliver_at = \"immediate\"       # turn_start, after_tool, immediate",
            "{ event = { payload = { question = \"How do we deploy?\" } } }",
            "{ event = { payload = { question = \"How do we log in?\" } } }",
        ),
        "on_session_end" => (
            "context.event.payload.get('turns', 0) > 10",
            "type = \"log\"                   # others: notify_self, set_state, emit_event\nmessage = \"a long session of {{ context.user.id }}: {{ context.event.payload.turns }} turns\"\nlevel = \"info\"                  # debug, info, warning, error",
            "{ event = { payload = { turns = 12 } } }",
            "{ event = { payload = { turns = 2 } } }",
        ),
        _ => (
            "context.turn.iteration_count > 5",
            "type = \"notify_self\"           # others: log, set_state, emit_event\nmessage = \"Turn {{ context.turn.iteration_count }} of this question: come to an answer.\"\ncategory = \"info\"               # info, warning, error, reminder\npriority = \"normal\"             # low, normal, high, critical\ndeliver_at = \"turn_start\"       # turn_start, after_tool, immediate",
            "{ turn = { iteration_count = 6 } }",
            "{ turn = { iteration_count = 5 } }",
        ),
    };
    format!(
        r#"# Every field is in docs/reference/rules.md. A change counts within a second.

[rule]
id = "{id}"
description = "What it is for"
trigger = "{trigger}"
priority = 100                  # 1 to 1000; higher is evaluated first

# A Python expression over `context`. `dodona eval expr '…' --trigger {trigger}` tries one.
[condition]
expression = "{condition}"

# How often it may fire; remove the `#` of what you want.
[limits]
# cooldown = "5 turns"          # or a time: "10m"
# once_per = "query"            # or "session"

[action]
{action}

# `dodona rules test {id}` runs these.
[[tests]]
name = "fires"
context = {fires}
expect = {{ fired = true }}

[[tests]]
name = "does not fire"
context = {does_not}
expect = {{ fired = false }}
"#
    )
}

const NOTIFY_RESULT: &str = "type = \"notify_self\"           # others: log, set_state, emit_event\nmessage = \"{{ context.result.tool_name }} took {{ context.result.duration_ms | round | int }} ms.\"\ncategory = \"info\"               # info, warning, error, reminder\npriority = \"normal\"             # low, normal, high, critical\ndeliver_at = \"after_tool\"       # turn_start, after_tool, immediate";

#[cfg(test)]
mod tests {
    use dodona_proto::RULE_TRIGGERS;
    use dodona_script::Engine;
    use serde_json::Map;

    use super::*;
    use crate::load::load_text;
    use crate::{Origin, Scope, run_tests};

    #[test]
    fn what_is_made_for_each_trigger_is_a_rule_whose_tests_pass() {
        for trigger in RULE_TRIGGERS {
            let origin = Origin {
                scope: Scope::Project,
                path: format!("{trigger}.toml"),
            };
            let text = draft("my-rule", trigger);
            let loaded = load_text(origin, &text, &|_| Err("no scripts".to_owned()));
            assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
            let rule = loaded.rule.unwrap();
            let tested = run_tests(&rule, &Map::new(), &Engine::new(1));
            assert_eq!(tested.len(), 2);
            assert!(
                tested.iter().all(|test| test.failure.is_none()),
                "{tested:#?}"
            );
        }
    }
}
