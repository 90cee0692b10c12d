//! The format: every field missing, wrong or out of range, with its place.

use dodona_rules::format::{self, Condition, Cooldown, OnError, OncePer};
use dodona_rules::{Action, Trigger};
use serde_json::json;

const GOOD: &str = r#"[rule]
id = "no-main-writes"
name = "No main writes"
description = ""
version = "1.2.3"
trigger = "on_tool_call"
priority = 1000
enabled = true
core = false
plugin_id = "guard"

[condition]
expression = "context.call.tool_name == 'vault_write'"

[limits]
cooldown = "10m"
once_per = "session"
on_error = "closed"

[[actions]]
type = "require_approval"
message = "Really?"

[[actions]]
type = "set_state"
key = "asked"
value = [1, { a = 2026-01-01T00:00:00Z }]

[[tests]]
name = "asks"
context = { call = { tool_name = "vault_write" } }
settings = { most = 3 }
expect = { fired = true, message = "Really?" }
"#;

#[test]
fn every_field_is_read() {
    let (rule, problems) = format::parse("a.toml", GOOD);
    assert!(problems.is_empty(), "{problems:?}");
    let rule = rule.unwrap();
    assert_eq!(
        (rule.id.as_str(), rule.name.as_str()),
        ("no-main-writes", "No main writes")
    );
    assert_eq!(rule.version.to_string(), "1.2.3");
    assert_eq!((rule.trigger, rule.priority), (Trigger::OnToolCall, 1000));
    assert_eq!((rule.enabled, rule.core), (true, false));
    assert_eq!(rule.plugin_id.unwrap().as_str(), "guard");
    assert!(matches!(rule.condition, Condition::Expression(_)));
    assert_eq!(rule.spots.condition.line, 13);
    assert_eq!(
        rule.limits
            .cooldown
            .map(|c: Cooldown| c.to_string())
            .as_deref(),
        Some("10m")
    );
    assert_eq!(
        (rule.limits.once_per, rule.limits.on_error),
        (Some(OncePer::Session), OnError::Closed)
    );
    assert_eq!(
        rule.actions[0],
        Action::RequireApproval {
            message: "Really?".to_owned()
        }
    );
    let value = json!([1, {"a": "2026-01-01T00:00:00Z"}]);
    assert_eq!(
        rule.actions[1],
        Action::SetState {
            key: "asked".to_owned(),
            value
        }
    );
    assert_eq!(rule.tests[0].expect.message.as_deref(), Some("Really?"));
}

#[test]
fn defaults_are_those_of_the_format() {
    let text = "[rule]\nid = \"a\"\ntrigger = \"on_turn_start\"\n[condition]\nscript = \"a.lua\"\n[action]\ntype = \"log\"\n";
    let rule = format::parse("a.toml", text).0.unwrap();
    assert_eq!((rule.name.as_str(), rule.description.as_str()), ("a", ""));
    assert_eq!(
        (rule.version.to_string().as_str(), rule.priority),
        ("1.0.0", 100)
    );
    assert_eq!(
        (rule.enabled, rule.core, rule.plugin_id),
        (true, false, None)
    );
    let shown = json!({"type": "log", "message": "Rule triggered", "level": "info"});
    assert_eq!(json!(rule.actions[0]), shown);
}

/// Replaces a line of the good rule, and tells what is said then.
fn broken(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "{from}");
    let (rule, problems) = format::parse("a.toml", &GOOD.replacen(from, to, 1));
    assert!(rule.is_none(), "{to}");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_field_that_is_missing_wrong_or_out_of_range_is_told_with_its_place() {
    for (from, to, told) in [
        (
            "id = \"no-main-writes\"\n",
            "",
            "a.toml:1:1  error: `[rule]` has no `id`",
        ),
        (
            "id = \"no-main-writes\"",
            "id = \"No Main\"",
            "a.toml:2:6  error: invalid `id`: only a-z, 0-9 and `-` are allowed, such as `no-main`",
        ),
        (
            "id = \"no-main-writes\"",
            "id = 7",
            "a.toml:2:6  error: `id` must be a text, not an integer",
        ),
        (
            "id = \"no-main-writes\"",
            "id = \"\"",
            "a.toml:2:6  error: `id` is empty",
        ),
        (
            "name = \"No main writes\"",
            "name = []",
            "a.toml:3:8  error: `name` must be a text, not an array",
        ),
        (
            "description = \"\"",
            "description = 1",
            "a.toml:4:15  error: `description` must be a text",
        ),
        (
            "version = \"1.2.3\"",
            "version = \"1.2\"",
            "a.toml:5:11  error: invalid semantic version",
        ),
        (
            "trigger = \"on_tool_call\"",
            "trigger = \"on_tool_cal\"",
            "a.toml:6:11  error: unknown trigger `on_tool_cal`, did you mean `on_tool_call`?",
        ),
        (
            "trigger = \"on_tool_call\"\n",
            "",
            "error: `[rule]` has no `trigger`",
        ),
        (
            "priority = 1000",
            "priority = 0",
            "a.toml:7:12  error: `priority` must be a whole number from 1 to 1000",
        ),
        (
            "priority = 1000",
            "priority = 1001",
            "`priority` must be a whole number from 1 to 1000",
        ),
        (
            "priority = 1000",
            "priority = 1.5",
            "`priority` must be a whole number from 1 to 1000, not a float",
        ),
        (
            "priority = 1000",
            "priority = 99999999999999999999",
            "from 1 to 1000",
        ),
        (
            "enabled = true",
            "enabled = \"false\"",
            "a.toml:8:11  error: `enabled` must be true or false, not a string",
        ),
        (
            "core = false",
            "core = 1",
            "a.toml:9:8  error: `core` must be true or false",
        ),
        (
            "enabled = true\ncore = false",
            "enabled = false\ncore = true",
            "a.toml:9:8  error: a core rule is always enabled",
        ),
        (
            "plugin_id = \"guard\"",
            "plugin_id = \"../guard\"",
            "a.toml:10:13  error:",
        ),
        (
            "plugin_id",
            "plugin",
            "a.toml:10:1  error: unknown key `plugin`",
        ),
        (
            "[condition]\n",
            "[conditions]\n",
            "unknown key `conditions`, did you mean `condition`?",
        ),
        (
            "expression = \"context.call.tool_name == 'vault_write'\"",
            "",
            "a.toml:12:1  error: `[condition]` needs an `expression` or a `script`",
        ),
        ("[limits]", "script = \"a.lua\"\n[limits]", "not both"),
        (
            "cooldown = \"10m\"",
            "cooldown = \"soon\"",
            "a.toml:16:12  error: invalid cooldown `soon`",
        ),
        (
            "cooldown = \"10m\"",
            "cooldown = 10",
            "`cooldown` must be a text",
        ),
        (
            "once_per = \"session\"",
            "once_per = \"sesion\"",
            "a.toml:17:12  error: `once_per` cannot be `sesion`, did you mean `session`?",
        ),
        (
            "on_error = \"closed\"",
            "on_error = \"shut\"",
            "`on_error` cannot be `shut`",
        ),
        (
            "trigger = \"on_tool_call\"",
            "trigger = \"on_turn_end\"",
            "`on_error` is only allowed for `on_tool_call`",
        ),
        (
            "type = \"require_approval\"\n",
            "",
            "`[action]` has no `type`",
        ),
        (
            "type = \"require_approval\"",
            "type = \"require_aproval\"",
            "unknown action `require_aproval`, did you mean `require_approval`?",
        ),
        (
            "message = \"Really?\"\n\n",
            "\n",
            "`[action]` has no `message`",
        ),
        (
            "message = \"Really?\"\n\n",
            "message = \"Really?\"\nlevel = \"info\"\n",
            "unknown key `level`",
        ),
        ("key = \"asked\"\n", "", "`[action]` has no `key`"),
        ("key = \"asked\"", "key = 1", "`key` must be a text"),
        (
            "value = [1,",
            "value = [inf,",
            "in `value`, inf is not finite",
        ),
        (
            "expect = { fired = true, message = \"Really?\" }\n",
            "",
            "a test needs an expectation",
        ),
        (
            "expect = { fired = true,",
            "expect = { fired = \"yes\",",
            "`fired` must be true or false",
        ),
        (
            "expect = { fired = true,",
            "expect = { fired = false,",
            "no message, event or state can be expected",
        ),
        (
            "context = { call",
            "contxt = { call",
            "unknown key `contxt`, did you mean `context`?",
        ),
    ] {
        let lines = broken(from, to);
        assert!(
            lines.iter().any(|line| line.contains(told)),
            "{told}\n{lines:#?}"
        );
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "[rule]\nid = \"A\"\ntrigger = \"on_turn\"\npriority = -1\ncolour = \"red\"\n\
        [condition]\nexpression = \"x\"\nscript = \"y\"\n[limits]\ncooldown = \"x\"\n[action]\ntype = \"deny\"\n";
    let (rule, problems) = format::parse("a.toml", text);
    assert!(rule.is_none());
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line()).collect();
    assert_eq!(lines.len(), 7, "{problems:#?}");
    assert!(problems.iter().all(|problem| problem.excerpt().is_some()));
}

#[test]
fn a_rule_does_something_and_one_of_both_ways_to_say_it() {
    let without = GOOD.split("[[actions]]").next().unwrap();
    for (actions, told) in [
        ("", "missing table `[action]`"),
        (
            "[action]\ntype = \"log\"\n[[actions]]\ntype = \"log\"\n",
            "not both",
        ),
        ("actions = []\n", "unknown key `actions`"),
        (
            "[action]\ntype = \"emit_event\"\nevent_type = \"tool.call\"\n",
            "`event_type` must start with `custom.`",
        ),
        (
            "[action]\ntype = \"emit_event\"\nevent_type = \"custom.x\"\npayload = 1\n",
            "`payload` must be a table",
        ),
        (
            "[action]\ntype = \"notify_self\"\nmessage = \"x\"\ndeliver_at = \"later\"\n",
            "`deliver_at` cannot be `later`",
        ),
        (
            "[action]\ntype = \"notify_self\"\nmessage = \"x\"\npriority = \"urgent\"\n",
            "`priority` cannot be `urgent`",
        ),
        (
            "[action]\ntype = \"notify_self\"\nmessage = \"x\"\ncategory = \"warn\"\n",
            "`category` cannot be `warn`",
        ),
        (
            "[action]\ntype = \"log\"\nlevel = \"loud\"\n",
            "`level` cannot be `loud`",
        ),
    ] {
        let (_, problems) = format::parse("a.toml", &format!("{without}{actions}"));
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            lines.iter().any(|line| line.contains(told)),
            "{told}\n{lines:#?}"
        );
    }
    let turn = GOOD
        .replace("on_tool_call", "on_turn_start")
        .replace("on_error = \"closed\"\n", "");
    let (_, problems) = format::parse("a.toml", &turn);
    assert!(problems[0].to_string().contains(
        "`require_approval` is only allowed for `on_tool_call`, not for `on_turn_start`"
    ));
}

#[test]
fn a_text_that_is_no_toml_is_one_problem() {
    for text in ["[rule", "\0", "id = ", "[rule]\n[rule]\n"] {
        let (rule, problems) = format::parse("a.toml", text);
        assert!(rule.is_none());
        assert!(!problems.is_empty(), "{text}");
    }
    let (_, problems) = format::parse("a.toml", "");
    assert_eq!(problems.len(), 3, "{problems:#?}");
}
