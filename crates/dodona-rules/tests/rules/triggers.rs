//! Every trigger fires in a real turn. (Systems before this one had lifecycle events that nobody
//! emitted: rules that were dead, and nobody noticed.)

use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, calls_fail, notice, rule};

/// A rule that notes what it saw in the log.
fn witness(trigger: &str, condition: &str, message: &str) -> String {
    let id = trigger.replace('_', "-");
    let action = format!("type = \"log\"\nmessage = '''{message}'''");
    rule(&id, trigger, condition, &action)
}

async fn said(rig: &Rig, trigger: &str) -> Vec<String> {
    let rule = format!("rules/{}", trigger.replace('_', "-"));
    let log = rig.log().await.into_iter();
    let mine = log.filter(|one| one["rule"] == *rule);
    mine.map(|one| one["decisions"][0]["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn on_query_start_is_asked_once_for_each_question() {
    let text = witness(
        "on_query_start",
        "context.event.type == 'query.start'",
        "{{ context.user.id }} asks {{ context.event.payload.question }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([Reply::text("One.")]).await;
    rig.ask([Reply::text("Two.")]).await;
    assert_eq!(said(&rig, "on_query_start").await, ["alice asks Go"; 2]);
}

#[tokio::test]
async fn on_turn_start_is_asked_before_each_request() {
    let text = witness(
        "on_turn_start",
        "context.turn.number > 0",
        "turn {{ context.turn.number }}, {{ context.turn.iteration_count }} of {{ context.turn.max_iterations }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("One.")]).await;
    rig.ask([Reply::text("Two.")]).await;
    let expected = ["turn 1, 1 of 30", "turn 2, 2 of 30", "turn 3, 1 of 30"];
    assert_eq!(said(&rig, "on_turn_start").await, expected);
}

#[tokio::test]
async fn on_turn_end_is_asked_after_each_turn() {
    let text = witness(
        "on_turn_end",
        "True",
        "{{ context.event.payload.tool_calls }} tools, last: {{ context.event.payload.is_last }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("One.")]).await;
    let expected = ["1 tools, last: False", "0 tools, last: True"];
    assert_eq!(said(&rig, "on_turn_end").await, expected);
}

#[tokio::test]
async fn on_tool_call_is_asked_before_a_tool_runs() {
    let text = witness(
        "on_tool_call",
        "context.call.tool_name == 'tools_echo' and context.call.arguments.text == 'x'",
        "{{ context.call.tool_name }} {{ context.call.arguments.text }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([
        calls_echo("c1", "x"),
        calls_echo("c2", "y"),
        Reply::text("One."),
    ])
    .await;
    assert_eq!(said(&rig, "on_tool_call").await, ["tools_echo x"]);
}

#[tokio::test]
async fn on_tool_complete_is_asked_about_results() {
    let text = witness(
        "on_tool_complete",
        "context.result.success and context.result.result.text == 'x'",
        "{{ context.result.tool_name }} gave {{ context.result.result.text }}, call {{ context.history.total_tool_calls }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), calls_fail("c2"), Reply::text("One.")])
        .await;
    assert_eq!(
        said(&rig, "on_tool_complete").await,
        ["tools_echo gave x, call 1"]
    );
}

#[tokio::test]
async fn on_tool_failure_is_asked_about_errors_timeouts_and_refusals() {
    let failures = witness(
        "on_tool_failure",
        "not context.result.success",
        "{{ context.result.tool_name }}: {{ context.event.payload.ending }}, {{ failure_count(context.result.tool_name) }}",
    );
    let deny = rule(
        "no-x",
        "on_tool_call",
        "context.call.arguments.get('text') == 'x'",
        "type = \"deny\"\nmessage = \"not x\"",
    );
    let rig = Rig::with(&[("a.toml", &failures), ("b.toml", &deny)]).await;
    let hang = Reply::stream().tool_call("c3", "tools_hang", &["{}"]);
    rig.ask([
        calls_fail("c1"),
        calls_fail("c2"),
        hang,
        calls_echo("c4", "x"),
        Reply::text("One."),
    ])
    .await;
    let expected = [
        "tools_fail: error, 1",
        "tools_fail: error, 2",
        "tools_hang: timeout, 1",
        "tools_echo: denied, 0",
    ];
    assert_eq!(said(&rig, "on_tool_failure").await, expected);
}

#[tokio::test]
async fn on_session_end_is_asked_when_a_conversation_is_closed_and_when_the_server_stops() {
    let text = witness(
        "on_session_end",
        "context.event.type == 'session.end'",
        "{{ context.event.payload.reason }} after {{ context.turn.number }}",
    );
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([Reply::text("One.")]).await;
    rig.call("agent.close", json!({})).await.unwrap();
    assert_eq!(said(&rig, "on_session_end").await, ["closed after 1"]);
    rig.ask([Reply::text("Two.")]).await;
    let rig = rig.restart().await;
    let expected = ["closed after 1", "shutdown after 1"];
    assert_eq!(said(&rig, "on_session_end").await, expected);
}

#[tokio::test]
async fn a_rule_that_is_asked_and_does_not_fire_is_counted_all_the_same() {
    let text = notice("never", "on_turn_start", "context.turn.number > 1000", "?");
    let rig = Rig::with(&[("a.toml", &text)]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("One.")]).await;
    let alive = rig.listed("rules/never").await.unwrap()["liveness"].clone();
    assert_eq!(
        (&alive["evaluated"], &alive["fired"]),
        (&json!(2), &json!(0))
    );
    assert!(alive["last_evaluated"].is_string());
    assert!(rig.log().await.is_empty());
}
