//! Counts of rules belong to one user and one project, and say where the events came from.

use dodona_hub::Request;
use dodona_plugin::CallError;
use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, calls_echo, rule};

/// A call about no project: Bob is a member of none.
async fn anywhere(rig: &Rig, user: &str, method: &str, params: Value) -> Result<Value, CallError> {
    let request = rig.request(user, method, params);
    let request = Request {
        project: None,
        ..request
    };
    rig.hub().call(request).await
}

async fn echo(rig: &Rig, user: &str, text: &str) -> Result<Value, CallError> {
    anywhere(rig, user, "tools.echo", json!({ "text": text })).await
}

/// What is counted of a rule for a user, in all projects.
async fn liveness(rig: &Rig, user: &str, rule: &str) -> Value {
    let listed = anywhere(rig, user, "rules.list", json!({})).await.unwrap();
    let mut rules = listed["rules"].as_array().unwrap().iter();
    let found = rules.find(|one| one["rule"] == rule);
    found.unwrap()["liveness"].clone()
}

fn gate() -> String {
    let action = "type = \"deny\"\nmessage = \"no\"";
    let condition = "context.call.arguments.get('text') == 'stop'";
    rule("gate", "on_tool_call", condition, action)
}

#[tokio::test]
async fn evaluations_of_one_user_are_not_counted_for_another() {
    let rig = Rig::with(&[("gate.toml", &gate())]).await;
    for text in ["a", "b", "stop"] {
        let _ = echo(&rig, "alice", text).await;
    }
    let alice = liveness(&rig, "alice", "rules/gate").await;
    assert_eq!(
        (&alice["evaluated"], &alice["fired"]),
        (&json!(3), &json!(1)),
        "{alice}"
    );
    let bob = liveness(&rig, "bob", "rules/gate").await;
    assert_eq!(
        (&bob["evaluated"], &bob["fired"]),
        (&json!(0), &json!(0)),
        "{bob}"
    );
    assert_eq!(bob["last_evaluated"], Value::Null, "{bob}");
    echo(&rig, "bob", "b").await.unwrap();
    assert_eq!(liveness(&rig, "bob", "rules/gate").await["evaluated"], 1);
    let rig = rig.restart().await;
    assert_eq!(liveness(&rig, "bob", "rules/gate").await["evaluated"], 1);
    assert_eq!(liveness(&rig, "alice", "rules/gate").await["evaluated"], 3);
}

#[tokio::test]
async fn calls_in_a_query_and_calls_outside_of_one_are_counted_apart() {
    let rig = Rig::with(&[("gate.toml", &gate())]).await;
    rig.echo("x").await.unwrap();
    rig.echo("stop").await.unwrap_err();
    rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    let counted = liveness(&rig, "alice", "rules/gate").await;
    let counts = |part: &Value| (part["evaluated"].as_u64(), part["fired"].as_u64());
    assert_eq!(
        counts(&counted["outside_query"]),
        (Some(2), Some(1)),
        "{counted}"
    );
    assert_eq!(
        counts(&counted["in_query"]),
        (Some(1), Some(0)),
        "{counted}"
    );
    assert_eq!(counts(&counted), (Some(3), Some(1)), "{counted}");
    let explained = rig
        .call("rules.explain", json!({ "rule": "gate" }))
        .await
        .unwrap();
    assert_eq!(explained["liveness"], counted);
}

#[tokio::test]
async fn evaluations_are_counted_by_project() {
    let rig = Rig::with(&[("gate.toml", &gate())]).await;
    echo(&rig, "alice", "x").await.unwrap();
    let here = rig.listed("rules/gate").await.unwrap()["liveness"].clone();
    assert_eq!(here["evaluated"], 0, "{here}");
    rig.echo("x").await.unwrap();
    let here = rig.listed("rules/gate").await.unwrap()["liveness"].clone();
    assert_eq!(here["evaluated"], 1, "{here}");
    assert_eq!(liveness(&rig, "alice", "rules/gate").await["evaluated"], 2);
}

#[tokio::test]
async fn a_rule_without_surfaces_is_not_counted_for_calls_outside_of_a_query() {
    let hint = rule("hint", "on_tool_complete", "True", "type = \"log\"");
    let hint: String = (hint.lines().filter(|line| !line.starts_with("surfaces")))
        .flat_map(|line| [line, "\n"])
        .collect();
    let rig = Rig::with(&[("hint.toml", &hint)]).await;
    rig.echo("x").await.unwrap();
    let counted = liveness(&rig, "alice", "rules/hint").await;
    assert_eq!(counted["evaluated"], 0, "{counted}");
    rig.ask([calls_echo("c1", "x"), Reply::text("Done.")]).await;
    let counted = liveness(&rig, "alice", "rules/hint").await;
    assert_eq!(counted["in_query"]["fired"], 1, "{counted}");
    assert_eq!(counted["outside_query"]["evaluated"], 0, "{counted}");
}

#[tokio::test]
async fn a_switched_off_rule_is_not_counted_for_its_user() {
    let rig = Rig::with(&[("gate.toml", &gate())]).await;
    rig.echo("x").await.unwrap();
    rig.call("rules.disable", json!({ "rule": "gate" }))
        .await
        .unwrap();
    rig.echo("x").await.unwrap();
    rig.echo("stop").await.unwrap();
    assert_eq!(liveness(&rig, "alice", "rules/gate").await["evaluated"], 1);
}
