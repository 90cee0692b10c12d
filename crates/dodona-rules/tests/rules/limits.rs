//! `cooldown` and `once_per`.

use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, rule};

fn limited(trigger: &str, limit: &str) -> String {
    let text = rule(
        "a",
        trigger,
        "True",
        "type = \"log\"\nmessage = \"{{ context.turn.number }}\"",
    );
    format!("{text}[limits]\n{limit}\n")
}

async fn turns(rig: &Rig) -> Vec<String> {
    let log = rig.log().await.into_iter();
    log.map(|one| one["decisions"][0]["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_cooldown_of_turns_counts_turns_of_the_conversation() {
    let rig = Rig::with(&[(
        "a.toml",
        &limited("on_turn_start", "cooldown = \"3 turns\""),
    )])
    .await;
    rig.ask([calls_echo("c1", "x"), Reply::text("One.")]).await;
    for _ in 0..5 {
        rig.ask([Reply::text("Again.")]).await;
    }
    assert_eq!(turns(&rig).await, ["1", "4", "7"]);
    let alive = rig.listed("rules/a").await.unwrap()["liveness"].clone();
    assert_eq!(alive["suppressed"], 4);
}

#[tokio::test]
async fn a_cooldown_of_time_lasts() {
    let rig = Rig::with(&[("a.toml", &limited("on_turn_start", "cooldown = \"1h\""))]).await;
    for _ in 0..3 {
        rig.ask([Reply::text("Again.")]).await;
    }
    assert_eq!(turns(&rig).await, ["1"]);
    let rig = rig.restart().await;
    rig.ask([Reply::text("Again.")]).await;
    assert_eq!(turns(&rig).await, ["1"]);
}

#[tokio::test]
async fn once_per_query_is_once_in_each() {
    let rig = Rig::with(&[("a.toml", &limited("on_turn_start", "once_per = \"query\""))]).await;
    rig.ask([calls_echo("c1", "x"), Reply::text("One.")]).await;
    rig.ask([calls_echo("c2", "y"), Reply::text("Two.")]).await;
    assert_eq!(turns(&rig).await, ["1", "3"]);
}

#[tokio::test]
async fn once_per_session_is_once_until_it_ends() {
    let rig = Rig::with(&[(
        "a.toml",
        &limited("on_turn_start", "once_per = \"session\""),
    )])
    .await;
    rig.ask([Reply::text("One.")]).await;
    rig.ask([Reply::text("Two.")]).await;
    assert_eq!(turns(&rig).await, ["1"]);
    rig.call("agent.close", json!({})).await.unwrap();
    rig.ask([Reply::text("Three.")]).await;
    assert_eq!(turns(&rig).await, ["1", "1"]);
}

#[tokio::test]
async fn calls_outside_of_a_conversation_have_no_turns_to_wait_for() {
    let rig = Rig::with(&[("a.toml", &limited("on_tool_call", "cooldown = \"5 turns\""))]).await;
    rig.echo("x").await.unwrap();
    rig.echo("y").await.unwrap();
    assert_eq!(turns(&rig).await, ["0", "0"]);
}
