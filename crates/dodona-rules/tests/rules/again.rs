//! A query that is replayed is asked of the rules of now: what they would do otherwise is named.

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, calls_echo, calls_fail, notice, rule};

const HINT: &str = "Mind the cat.";

fn hint(message: &str) -> String {
    notice(
        "hint",
        "on_tool_complete",
        "context.result.success",
        message,
    )
}

fn forbid() -> String {
    let action = "type = \"deny\"\nmessage = \"not today\"";
    rule(
        "forbid",
        "on_tool_call",
        "context.call.tool_name == 'tools_echo'",
        action,
    )
}

fn count() -> String {
    let action = "type = \"set_state\"\nkey = \"count\"\n\
        value = \"{{ (context.state.get('count', 0) | int) + 1 }}\"";
    rule("count", "on_turn_start", "True", action)
}

/// After the third turn of all.
fn late() -> String {
    notice(
        "late",
        "on_turn_end",
        "context.state.get('count', 0) >= 3",
        "It is late.",
    )
}

async fn rig() -> Rig {
    Rig::with(&[
        ("hint.toml", &hint(HINT)),
        ("count.toml", &count()),
        ("late.toml", &late()),
    ])
    .await
}

/// Asks a question that takes three turns, and answers which query that was.
async fn ask(rig: &Rig) -> String {
    let replies = [calls_echo("a", "hi"), calls_fail("b"), Reply::text("Done.")];
    let answer = rig.ask(replies).await;
    let response = answer.data("AgentResponse");
    response[0]["query_id"].as_str().unwrap().to_owned()
}

async fn replay(rig: &Rig, query: &str) -> Value {
    let params = json!({ "query_id": query });
    rig.call("agent.replay", params).await.unwrap()
}

#[tokio::test]
async fn rules_that_are_as_they_were_decide_as_they_did() {
    let rig = rig().await;
    let mut queries = Vec::new();
    for _ in 0..4 {
        queries.push(ask(&rig).await);
    }
    let logged = rig.log().await.len();
    let waiting = rig.events("rules.decided").await.len();
    for query in &queries {
        let replayed = replay(&rig, query).await;
        assert_eq!(replayed["divergence"], Value::Null, "{replayed}");
        assert_eq!(replayed["replayed"], 3);
        let again = rig.call("rules.again", json!({ "query_id": query })).await;
        assert!(again.unwrap()["events"].as_u64().unwrap() >= 9);
    }
    // To ask again leaves nothing behind.
    assert_eq!(rig.log().await.len(), logged);
    assert_eq!(rig.events("rules.decided").await.len(), waiting);
}

#[tokio::test]
async fn a_rule_that_was_changed_added_or_removed_is_named_with_its_turn() {
    let rig = rig().await;
    let query = ask(&rig).await;
    let named = async |turn: u64, what: &str| {
        rig.reload().await;
        let replayed = replay(&rig, &query).await;
        let divergence = &replayed["divergence"];
        assert_eq!(
            (&divergence["turn"], &divergence["what"]),
            (&json!(turn), &json!(what))
        );
    };
    rig.put("hint.toml", &hint("Mind the dog."));
    named(
        1,
        "the rule `rules/hint` (on_tool_complete) decides differently now",
    )
    .await;
    rig.remove("hint.toml");
    named(
        1,
        "the rule `rules/hint` (on_tool_complete) had a decision then and has none now",
    )
    .await;
    rig.put("hint.toml", &hint(HINT));
    rig.put("forbid.toml", &forbid());
    named(
        1,
        "the rule `rules/forbid` (on_tool_call) has a decision now and had none then",
    )
    .await;
    rig.remove("forbid.toml");
    // What is said later is named later.
    rig.remove("late.toml");
    named(
        3,
        "the rule `rules/late` (on_turn_end) had a decision then and has none now",
    )
    .await;
    rig.put("late.toml", &late());
    rig.reload().await;
    assert_eq!(replay(&rig, &query).await["divergence"], Value::Null);
}
