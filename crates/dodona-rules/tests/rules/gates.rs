//! Refusals and questions, from every surface.

use std::sync::Arc;

use dodona_hub::{Approvers, HubConfig, Request};
use dodona_proto::{ErrorCode, Principal, Scopes, Surface, UserId};
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, rule, until};

fn deny() -> String {
    rule(
        "no-secrets",
        "on_tool_call",
        "'secret' in context.call.arguments.get('text', '')",
        "type = \"deny\"\nmessage = \"{{ context.call.arguments.text }} is not for {{ context.user.id }}\"",
    )
}

fn ask() -> String {
    rule(
        "ask-first",
        "on_tool_call",
        "context.call.tool_name == 'tools_echo'",
        "type = \"require_approval\"\nmessage = \"Echo {{ context.call.arguments.text }}?\"",
    )
}

fn answerable() -> HubConfig {
    let mut config = HubConfig::default();
    config.approvals.approvers = Approvers::Available;
    config
}

#[tokio::test]
async fn a_refusal_goes_to_the_model_as_the_tools_result() {
    let rig = Rig::with(&[("a.toml", &deny())]).await;
    let answer = rig
        .ask([
            calls_echo("c1", "secret"),
            calls_echo("c2", "open"),
            Reply::text("Done."),
        ])
        .await;
    assert_eq!(answer.endings(), ["denied", "success"]);
    assert!(rig.sent()[1].contains("secret is not for alice"));
}

#[tokio::test]
async fn a_refusal_holds_on_every_surface() {
    let rig = Rig::with(&[("a.toml", &deny())]).await;
    for surface in [
        Surface::Cli,
        Surface::Rpc,
        Surface::Web,
        Surface::Mcp,
        Surface::Internal,
    ] {
        let principal = Arc::new(Principal {
            user: UserId::new("alice").unwrap(),
            scopes: Scopes::all(),
            surface,
        });
        let request = Request::new(principal, "tools.echo", json!({"text": "secret"}));
        let error = rig.hub().call(request).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{surface:?}");
        assert_eq!(error.message, "secret is not for alice");
    }
    assert!(rig.echo("open").await.is_ok());
}

#[tokio::test]
async fn a_call_waits_until_a_person_has_agreed() {
    let rig = Arc::new(Rig::set_up(answerable(), &[("a.toml", &ask())]).await);
    for (answer, code) in [("hub.approve", None), ("hub.deny", Some(ErrorCode::Denied))] {
        let waiting = Arc::clone(&rig);
        let call = tokio::spawn(async move { waiting.echo("x").await });
        let mut id = String::new();
        until("the question is there", || {
            let rig = Arc::clone(&rig);
            async move { !pending(&rig).await.is_empty() }
        })
        .await;
        let asked = pending(&rig).await;
        assert_eq!(asked[0]["message"], "Echo x?");
        assert_eq!(asked[0]["plugin"], "rules");
        id.push_str(asked[0]["id"].as_str().unwrap());
        rig.call(answer, json!({ "id": id })).await.unwrap();
        let outcome = call.await.unwrap();
        assert_eq!(outcome.err().map(|error| error.code), code);
    }
}

async fn pending(rig: &Rig) -> Vec<serde_json::Value> {
    let found = rig.call("hub.approvals", json!({})).await.unwrap();
    let all = found["approvals"].as_array().unwrap().clone();
    all.into_iter()
        .filter(|one| one["state"] == "pending")
        .collect()
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_question_is_a_refusal() {
    let mut config = HubConfig::default();
    config.approvals.approvers = Approvers::None;
    let rig = Rig::set_up(config, &[("a.toml", &ask())]).await;
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
}

#[tokio::test]
async fn a_refusal_beats_a_question_whatever_the_priorities() {
    let ask = ask().replace("trigger", "priority = 900\ntrigger");
    let rig = Rig::set_up(answerable(), &[("a.toml", &ask), ("b.toml", &deny())]).await;
    let error = rig.echo("secret").await.unwrap_err();
    assert_eq!(error.message, "secret is not for alice");
}

#[tokio::test]
async fn of_several_refusals_the_one_of_the_highest_priority_is_told() {
    let late = rule(
        "a",
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"late\"",
    );
    let early = rule(
        "z",
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"early\"",
    )
    .replace("trigger", "priority = 101\ntrigger");
    let rig = Rig::with(&[("a.toml", &late), ("z.toml", &early)]).await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "early");
}

#[tokio::test]
async fn a_gate_that_fails_says_itself_what_that_means() {
    let broken = |on_error: &str| {
        let text = rule(
            "broken",
            "on_tool_call",
            "1 // len(context.state) > 0",
            "type = \"deny\"\nmessage = \"no\"",
        );
        format!("{text}[limits]\non_error = \"{on_error}\"\n")
    };
    let rig = Rig::with(&[("a.toml", &broken("open"))]).await;
    assert!(rig.echo("x").await.is_ok());
    rig.put("a.toml", &broken("closed"));
    rig.reload().await;
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(
        error
            .message
            .contains("rule `broken` could not be evaluated")
    );
    let log = rig.log().await;
    assert_eq!(log.len(), 2);
    assert!(
        log[0]["error"].as_str().unwrap().contains("division"),
        "{}",
        log[0]
    );
}
