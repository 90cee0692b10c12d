//! The rules that come with the program, each firing in a real agent's run.

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, calls_echo, calls_fail};

/// What a bundled rule said, the oldest first.
async fn said(rig: &Rig, rule: &str) -> Vec<String> {
    let found = rig
        .call("rules.log", json!({ "rule": rule }))
        .await
        .unwrap();
    let executions = found["executions"].as_array().unwrap().iter().rev();
    executions
        .map(|one| {
            assert_eq!(one["error"], Value::Null, "{one}");
            one["decisions"][0]["message"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// Whether the model was sent this in its request of a number.
fn was_sent(rig: &Rig, request: usize, text: &str) -> bool {
    rig.sent()[request].contains(text)
}

#[tokio::test]
async fn a_question_is_logged() {
    let rig = Rig::with(&[]).await;
    rig.ask([Reply::text("Yes.")]).await;
    let said = said(&rig, "query-start-log").await;
    assert_eq!(said, ["a question of alice about orchard"]);
}

#[tokio::test]
async fn the_model_is_warned_when_the_budget_or_its_window_is_nearly_used_up() {
    let rig = Rig::with_window(40_000, |options| options.token_budget = Some(38_000)).await;
    // 87 % of the budget. With the system prompt and the tools, 87 % of the window.
    rig.ask([Reply::text(&" apple".repeat(33_000))]).await;
    rig.ask([Reply::text("Short.")]).await;
    for (rule, begin, end) in [
        ("token-budget-warning", "Token budget at ", "%. Wrap up"),
        (
            "context-limit-warning",
            "The request fills ",
            "% of the model's window.",
        ),
    ] {
        let said = said(&rig, rule).await;
        assert_eq!(said.len(), 1, "{rule}: {said:?}");
        assert!(
            said[0].starts_with(begin) && said[0].contains(end),
            "{said:?}"
        );
        assert!(was_sent(&rig, 1, begin), "{rule}");
    }
    // A cooldown of five turns holds for the next one.
    rig.ask([Reply::text("Again.")]).await;
    assert_eq!(said(&rig, "token-budget-warning").await.len(), 1);
}

#[tokio::test]
async fn the_model_is_warned_of_its_last_turns_by_the_number_it_may_really_have() {
    let rig = Rig::with_options(|options| options.max_turns = 3).await;
    rig.ask([
        calls_echo("c1", "one"),
        calls_echo("c2", "two"),
        Reply::text("Done."),
    ])
    .await;
    let warning = "This is turn 3 of at most 3. Come to an answer with what you have.";
    assert_eq!(said(&rig, "iteration-budget-warning").await, [warning]);
    assert!(!was_sent(&rig, 1, warning) && was_sent(&rig, 2, warning));
}

#[tokio::test]
async fn the_model_is_warned_of_a_tool_that_keeps_failing() {
    let rig = Rig::with(&[]).await;
    rig.ask([
        calls_fail("c1"),
        calls_fail("c2"),
        calls_fail("c3"),
        Reply::text("I give up."),
    ])
    .await;
    let said = said(&rig, "repeated-failure-warning").await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("tools_fail has failed 3 times"),
        "{said:?}"
    );
    let warning = "tools_fail has failed 3 times";
    assert!(!was_sent(&rig, 2, warning) && was_sent(&rig, 3, warning));
}

#[tokio::test]
async fn the_model_is_told_that_a_tool_found_much() {
    let rig = Rig::with(&[]).await;
    let lists = |id: &str, count: u32| {
        let arguments = json!({ "count": count }).to_string();
        Reply::stream().tool_call(id, "tools_list", &[&arguments])
    };
    rig.ask([lists("c1", 6), lists("c2", 7), Reply::text("Much.")])
        .await;
    let hint = "tools_list returned many results.";
    let said = said(&rig, "large-result-hint").await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(hint), "{said:?}");
    assert!(!was_sent(&rig, 1, hint) && was_sent(&rig, 2, hint));
}
