//! What earlier systems of this kind got wrong, one test each.
//!
//! Most of these have fuller tests beside this file; here each has its name, and fails alone.

use dodona_rules::{Scope, Trigger, load};
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, calls_fail, notice, put, rule};

/// A rule with a script beside it.
fn scripted(id: &str, trigger: &str) -> String {
    let surfaces = if trigger.starts_with("on_tool") {
        "surfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n"
    } else {
        ""
    };
    format!(
        "[rule]\nid = \"{id}\"\ntrigger = \"{trigger}\"\n{surfaces}\
         [condition]\nscript = \"{id}.lua\"\n[action]\ntype = \"log\"\n"
    )
}

/// 1. Lifecycle events were never emitted, so core rules were dead and nobody noticed.
#[tokio::test]
async fn point_1_every_trigger_reaches_its_rule_and_the_rule_knows_that_it_was_asked() {
    let rig = Rig::with(&[]).await;
    let id = |trigger: Trigger| trigger.as_str().replace('_', "-");
    for trigger in Trigger::ALL {
        let text = rule(&id(trigger), trigger.as_str(), "True", "type = \"log\"");
        let text = text.replace("trigger =", "core = true\ntrigger =");
        rig.put(&format!("{trigger}.toml"), &text);
    }
    rig.reload().await;
    let replies = [
        calls_echo("c1", "x"),
        calls_fail("c2"),
        Reply::text("Done."),
    ];
    rig.ask(replies).await;
    rig.call("agent.close", json!({})).await.unwrap();
    for trigger in Trigger::ALL {
        let listed = rig.listed(&format!("rules/{}", id(trigger))).await.unwrap();
        let evaluated = listed["liveness"]["evaluated"].as_u64();
        assert!(evaluated > Some(0), "{trigger} was never asked");
        assert!(rig.fired(&id(trigger)).await > 0, "{trigger} never fired");
    }
}

/// 2. One malformed file lost all rules; one bad expression aborted every lower rule.
#[tokio::test]
async fn point_2_a_malformed_file_and_a_bad_expression_cost_nobody_else_anything() {
    let condition = "context.state['gone'] > 0";
    let fails = rule("fails", "on_tool_call", condition, "type = \"log\"")
        .replace("trigger", "priority = 999\ntrigger");
    let lower = rule("lower", "on_tool_call", "True", "type = \"log\"");
    let rig = Rig::with(&[
        ("a.toml", "[rule\nid = nonsense"),
        ("b.toml", &fails),
        ("c.toml", &lower),
    ])
    .await;
    rig.echo("x").await.unwrap();
    assert_eq!(rig.fired("lower").await, 1);
    assert!(rig.problems().await[0].contains("a.toml:1:6"));
}

/// 3. A typo (`=` for `==`) evaluated as true; unknown fields failed at run time, silently.
#[test]
fn point_3_a_typo_and_an_unknown_field_are_errors_when_the_rule_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for (condition, told) in [
        ("context.turn.number = 3", "a.toml:5:"),
        ("context.turn.tokens > 3", "has no field `tokens`"),
        ("context.turn.number > 'three'", "a.toml:5:"),
        ("turn.number > 3", "did you mean `context.turn`?"),
        ("context.turn.number > 3; True", "a.toml:5:"),
    ] {
        let text = rule("a", "on_turn_start", condition, "type = \"log\"");
        put(folder.path(), "a.toml", &text);
        let loaded = load::load_file(&folder.path().join("a.toml"), Scope::User);
        assert!(loaded.rule.is_none(), "{condition}");
        let problem = loaded.problems[0].to_string();
        assert!(problem.contains(told), "{problem}");
    }
}

/// 4. Lua's memory limit was never applied; a timed-out script kept its thread; `pcall` swallowed
/// the timeout.
#[tokio::test]
async fn point_4_a_scripts_limits_hold_and_the_next_event_is_judged_as_usual() {
    let hungry = "local t = {} while true do t[#t+1] = string.rep('x', 1000000) end";
    let stubborn = "while true do pcall(function() while true do end end) end";
    let rig = Rig::with(&[]).await;
    for (id, script) in [
        ("hungry", hungry),
        ("endless", "while true do end"),
        ("stubborn", stubborn),
    ] {
        rig.put(&format!("{id}.toml"), &scripted(id, "on_tool_call"));
        rig.put(&format!("{id}.lua"), script);
    }
    rig.reload().await;
    for _ in 0..3 {
        rig.echo("x").await.unwrap();
    }
    let log = rig.log().await;
    assert_eq!(log.len(), 9);
    assert!(log.iter().all(|one| one["error"].is_string()), "{log:#?}");
}

/// 5. Templates were unsandboxed, and a script's output was rendered again.
#[tokio::test]
async fn point_5_what_a_tool_said_is_not_executed_in_a_message_nor_in_a_scripts_action() {
    let message = "{{ context.result.result.text }}";
    let message = notice("m", "on_tool_complete", "True", message);
    let lua = "return { type = 'notify_self', message = context.result.result.text }";
    let script = scripted("s", "on_tool_complete");
    let rig = Rig::with(&[("m.toml", &message), ("s.toml", &script), ("s.lua", lua)]).await;
    let attack = "{{ 600 + 66 }}{{ context.user.id }}";
    rig.ask([calls_echo("c1", attack), Reply::text("Done.")])
        .await;
    let log = rig.log().await;
    assert_eq!(log.len(), 2);
    for one in log {
        assert_eq!(one["decisions"][0]["message"], attack);
    }
    assert!(!rig.sent()[1].contains("666"));
    let bomb = notice("b", "on_turn_start", "True", "{{ 'x' * 99999999 }}");
    rig.put("b.toml", &bomb);
    rig.reload().await;
    rig.ask([Reply::text("Done.")]).await;
    assert!(rig.log().await.last().unwrap()["error"].is_string());
}

/// 6. `set_state` only logged; rendered values were always texts, so counters never counted.
#[tokio::test]
async fn point_6_a_counter_counts() {
    let set = "type = \"set_state\"\nkey = \"n\"\nvalue = \"{{ context.state.get('n', 0) + 1 }}\"";
    let count = rule("count", "on_tool_call", "True", set);
    let deny = "type = \"deny\"\nmessage = \"the third\"";
    let third = rule("third", "on_tool_call", "context.state.get('n') == 2", deny);
    let rig = Rig::with(&[("a.toml", &count), ("b.toml", &third)]).await;
    assert!(rig.echo("1").await.is_ok());
    assert!(rig.echo("2").await.is_ok());
    assert_eq!(rig.echo("3").await.unwrap_err().message, "the third");
    assert!(rig.echo("4").await.is_ok());
}

/// 7. Toggling a rule never reached the engine; disabling worked on core rules.
#[tokio::test]
async fn point_7_a_toggle_reaches_the_engine_and_no_core_rule() {
    let deny = |id: &str, head: &str| {
        let condition = format!("context.call.arguments.text == '{id}'");
        let action = "type = \"deny\"\nmessage = \"no\"";
        rule(id, "on_tool_call", &condition, action).replace("trigger", &format!("{head}\ntrigger"))
    };
    let (soft, hard) = (deny("soft", ""), deny("hard", "core = true"));
    let rig = Rig::with(&[("a.toml", &soft), ("b.toml", &hard)]).await;
    assert!(rig.echo("soft").await.is_err() && rig.echo("hard").await.is_err());
    let disable = |rule: &str| rig.call("rules.disable", json!({ "rule": rule }));
    assert!(disable("soft").await.is_ok());
    assert!(disable("hard").await.is_err());
    assert!(rig.echo("soft").await.is_ok() && rig.echo("hard").await.is_err());
}

/// 8. Notifications were queued and never delivered.
#[tokio::test]
async fn point_8_every_notice_reaches_the_model_and_only_once() {
    let moments = [
        ("turn_start", "on_query_start"),
        ("after_tool", "on_tool_call"),
        ("immediate", "on_turn_end"),
    ];
    let rig = Rig::with(&[]).await;
    for (at, trigger) in moments {
        let action =
            format!("type = \"notify_self\"\ndeliver_at = \"{at}\"\nmessage = \"told {at}\"");
        let text = rule(&at.replace('_', "-"), trigger, "True", &action);
        let text = format!("{text}[limits]\nonce_per = \"session\"\n");
        rig.put(&format!("{at}.toml"), &text);
    }
    rig.reload().await;
    let first = rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    let second = rig.ask([Reply::text("Done.")]).await;
    let told = |answer: &crate::rig::Answer| {
        let told = answer.data("Notification").into_iter();
        let told = told.filter_map(|told| told["message"].as_str());
        let told = told.filter(|message| message.starts_with("told "));
        told.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = [told(&first), told(&second)].concat();
    all.sort_unstable();
    assert_eq!(
        all,
        ["told after_tool", "told immediate", "told turn_start"]
    );
    let sent = rig.sent().pop().unwrap();
    for (at, _) in moments {
        assert_eq!(sent.matches(&format!("told {at}")).count(), 1, "{sent}");
    }
}
