//! Every action does what it says, and every moment of delivery comes.

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, calls_echo, notice, rule};

fn deliver(id: &str, trigger: &str, at: &str, message: &str) -> String {
    let action =
        format!("type = \"notify_self\"\ndeliver_at = \"{at}\"\nmessage = '''{message}'''");
    rule(id, trigger, "True", &action)
}

#[tokio::test]
async fn a_notice_for_the_turns_start_reaches_the_model_in_that_very_request() {
    let text = deliver(
        "a",
        "on_turn_start",
        "turn_start",
        "turn {{ context.turn.number }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    let answer = rig.ask([Reply::text("Done.")]).await;
    assert!(
        rig.sent()[0].contains("- [info] turn 1"),
        "{:?}",
        rig.sent()
    );
    let told = answer.data("Notification");
    assert_eq!(told[0]["message"], "turn 1");
}

#[tokio::test]
async fn a_notice_for_after_the_tools_waits_for_them() {
    let text = deliver("a", "on_query_start", "after_tool", "tools have run");
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    let sent = rig.sent();
    assert!(!sent[0].contains("tools have run"));
    assert!(sent[1].contains("tools have run"));
}

#[tokio::test]
async fn an_immediate_notice_reaches_the_next_request_whichever_that_is() {
    let text = deliver("a", "on_tool_complete", "immediate", "now");
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    let sent = rig.sent();
    assert!(!sent[0].contains("[info] now") && sent[1].contains("[info] now"));
}

#[tokio::test]
async fn what_the_last_turn_produced_is_delivered_in_the_next_query_once() {
    let text = notice(
        "a",
        "on_turn_end",
        "context.turn.number == 1",
        "from before",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([Reply::text("One.")]).await;
    rig.ask([Reply::text("Two.")]).await;
    rig.ask([Reply::text("Three.")]).await;
    let count = |sent: &str| sent.matches("from before").count();
    let counts: Vec<usize> = rig.sent().iter().map(|sent| count(sent)).collect();
    // Told once; after that it is a part of the conversation.
    assert_eq!(counts, [0, 1, 1]);
}

#[tokio::test]
async fn the_most_urgent_notice_comes_first_and_the_same_is_told_once() {
    let urgent =
        "type = \"notify_self\"\npriority = \"critical\"\ncategory = \"error\"\nmessage = \"fire\"";
    let rules = [
        ("a.toml", notice("a", "on_turn_start", "True", "tea")),
        ("b.toml", notice("b", "on_turn_start", "True", "tea")),
        ("c.toml", rule("c", "on_turn_start", "True", urgent)),
    ];
    let rules: Vec<(&str, &str)> = rules.iter().map(|(name, text)| (*name, &**text)).collect();
    let rig = Rig::with(&rules).await;
    rig.ask([Reply::text("Done.")]).await;
    let sent = &rig.sent()[0];
    assert!(sent.contains("- [error] fire\\n- [info] tea\""), "{sent}");
}

#[tokio::test]
async fn a_counter_counts_and_lasts() {
    let count = rule(
        "count",
        "on_tool_complete",
        "True",
        "type = \"set_state\"\nkey = \"runs\"\nvalue = \"{{ context.state.get('runs', 0) + 1 }}\"",
    );
    let told = notice(
        "told",
        "on_turn_start",
        "context.state.get('runs', 0) >= 3",
        "{{ context.state.runs }} runs",
    );
    let rig = Rig::with(&[("a.toml", &count), ("b.toml", &told)]).await;
    rig.ask([
        calls_echo("c1", "1"),
        calls_echo("c2", "2"),
        Reply::text("Done."),
    ])
    .await;
    let rig = rig.restart().await;
    rig.ask([calls_echo("c3", "3"), Reply::text("Done.")]).await;
    let sent = rig.sent();
    assert!(!sent[3].contains("runs"), "{sent:?}");
    assert!(sent[4].contains("[info] 3 runs"), "{sent:?}");
}

#[tokio::test]
async fn tools_that_run_side_by_side_are_all_counted() {
    let count = rule(
        "count",
        "on_tool_complete",
        "True",
        "type = \"set_state\"\nkey = \"runs\"\nvalue = \"{{ context.state.get('runs', 0) + 1 }}\"",
    );
    let rig = Rig::with(&[("a.toml", &count)]).await;
    let calls = (0..12).map(|n| rig.echo(if n % 2 == 0 { "a" } else { "b" }));
    futures_util::future::join_all(calls).await;
    let last = rig.log().await.pop().unwrap();
    assert_eq!(last["decisions"][0]["value"], 12);
}

#[tokio::test]
async fn state_keeps_every_type() {
    let set = r#"
        [rule]
        id = "set"
        trigger = "on_query_start"
        [condition]
        expression = "True"
        [[actions]]
        type = "set_state"
        key = "table"
        value = { text = "plain", number = 1.5, list = [1, "{{ 1 + 1 }}", true], when = 2026-01-02 }
        [[actions]]
        type = "set_state"
        key = "share"
        value = "{{ context.turn.token_usage > 0.5 }}"
        [[actions]]
        type = "set_state"
        key = "mixed"
        value = "turn {{ context.turn.max_iterations }}"
        [[actions]]
        type = "set_state"
        key = "nothing"
    "#;
    let seen = rule(
        "seen",
        "on_turn_start",
        "context.state.table.list[1] == 2 and context.state.share == False",
        "type = \"log\"\nmessage = \"{{ context.state | tojson }}\"",
    );
    let rig = Rig::with(&[("a.toml", set), ("b.toml", &seen)]).await;
    rig.ask([Reply::text("Done.")]).await;
    let log = rig.log().await;
    let shown = log.last().unwrap()["decisions"][0]["message"]
        .as_str()
        .unwrap();
    let state: Value = serde_json::from_str(shown).unwrap();
    assert_eq!(
        state,
        json!({
            "table": {"text": "plain", "number": 1.5, "list": [1, 2, true], "when": "2026-01-02"},
            "share": false,
            "mixed": "turn 30",
            "nothing": null,
        })
    );
}

#[tokio::test]
async fn an_emitted_event_is_on_the_bus_and_in_the_journal() {
    let text = rule(
        "milestone",
        "on_turn_end",
        "context.turn.number == 1",
        "type = \"emit_event\"\nevent_type = \"custom.milestone\"\npayload = { user = \"{{ context.user.id }}\", turn = \"{{ context.turn.number }}\" }",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([Reply::text("Done.")]).await;
    let events = rig.events("custom.milestone").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].payload, json!({"user": "alice", "turn": 1}));
}

#[tokio::test]
async fn a_script_says_itself_what_to_do() {
    let text = "[rule]\nid = \"s\"\ntrigger = \"on_tool_complete\"\nsurfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n[condition]\nscript = \"scripts/s.lua\"\n\
        [action]\ntype = \"log\"\nmessage = \"its own\"\n";
    let script = r#"
        if context.result.result.text == "quiet" then return false end
        if context.result.result.text == "own" then return true end
        return {
            { type = "notify_self", message = "{{ context.user.id }} said " .. context.result.result.text },
            { type = "set_state", key = "last", value = { text = context.result.result.text, n = 2 } },
        }
    "#;
    let rig = Rig::with(&[("s.toml", text), ("scripts/s.lua", script)]).await;
    rig.ask([
        calls_echo("c1", "quiet"),
        calls_echo("c2", "own"),
        calls_echo("c3", "{{ 7 * 7 }}"),
        Reply::text("Done."),
    ])
    .await;
    let log = rig.log().await;
    assert_eq!(log.len(), 2, "{log:#?}");
    assert_eq!(log[0]["decisions"][0]["message"], "its own");
    // What a script says, and what a tool said, is data: nothing renders it.
    let said = "{{ context.user.id }} said {{ 7 * 7 }}";
    assert_eq!(log[1]["decisions"][0]["message"], said);
    assert_eq!(
        log[1]["decisions"][1]["value"],
        json!({"text": "{{ 7 * 7 }}", "n": 2})
    );
    assert!(rig.sent()[3].contains("{{ 7 * 7 }}"));
}
