//! Rules read what a project's rules have set where they name the project, and nowhere else.

use dodona_proto::ErrorCode;
use serde_json::json;

use crate::rig::{Rig, rule};

/// A rule of the project that freezes it.
fn freezes() -> String {
    let action = "type = \"set_state\"\nkey = \"frozen\"\nvalue = true";
    rule(
        "freeze",
        "on_tool_complete",
        "context.result.tool_name == 'tools_list'",
        action,
    )
}

fn denies(condition: &str) -> String {
    let action =
        "type = \"deny\"\nmessage = \"frozen: {{ context.project_state('orchard').frozen }}\"";
    let condition = format!("context.call.tool_name == 'tools_echo' and {condition}");
    rule("gate", "on_tool_call", &condition, action)
}

#[tokio::test]
async fn a_user_rule_reads_the_state_of_the_project_it_names() {
    let named = denies("context.project_state('orchard').get('frozen', False)");
    let rig = Rig::with(&[("gate.toml", &named)]).await;
    rig.put_in_project("freeze.toml", &freezes());
    rig.trust("nothing").await;
    rig.echo("x").await.unwrap();
    rig.call("tools.list", json!({ "count": 1 })).await.unwrap();
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert_eq!(error.message, "frozen: True");
    let explained = rig
        .call("rules.explain", json!({ "rule": "gate" }))
        .await
        .unwrap();
    assert_eq!(explained["events"][0]["verdict"], "fired", "{explained:#}");
    assert_eq!(
        explained["events"][0]["decisions"][0]["message"],
        "frozen: True"
    );
}

#[tokio::test]
async fn without_the_name_or_with_another_there_is_nothing_to_read() {
    for condition in [
        "context.state.get('frozen', False)",
        "context.project_state('elsewhere').get('frozen', False)",
        "context.project_state('').get('frozen', False)",
    ] {
        let rig = Rig::with(&[("gate.toml", &denies(condition))]).await;
        rig.put_in_project("freeze.toml", &freezes());
        rig.trust("nothing").await;
        rig.call("tools.list", json!({ "count": 1 })).await.unwrap();
        rig.echo("x").await.unwrap();
    }
}

#[tokio::test]
async fn a_script_reads_it_too() {
    let text = "[rule]\nid = \"gate\"\ntrigger = \"on_tool_call\"\n[condition]\nscript = \"gate.lua\"\n[action]\ntype = \"deny\"\nmessage = \"no\"\n";
    let script = "if context.call.tool_name ~= 'tools_echo' then return false end\n\
        return context.project_state('orchard').frozen == true";
    let rig = Rig::with(&[("gate.toml", text), ("gate.lua", script)]).await;
    rig.put_in_project("freeze.toml", &freezes());
    rig.trust("nothing").await;
    rig.echo("x").await.unwrap();
    rig.call("tools.list", json!({ "count": 1 })).await.unwrap();
    assert_eq!(rig.echo("x").await.unwrap_err().message, "no");
}

#[tokio::test]
async fn it_is_checked_and_tested_like_the_rest_of_the_context() {
    let tested = denies("context.project_state('orchard').get('frozen', False)")
        + "[[tests]]\nname = \"frozen\"\ncontext = { call = { tool_name = \"tools_echo\" }, project_state = { orchard = { frozen = true } } }\nexpect = { fired = true, message = \"frozen: True\" }\n";
    let rig = Rig::with(&[
        ("gate.toml", &tested),
        (
            "number.toml",
            &denies("context.project_state(7)").replace("\"gate\"", "\"number\""),
        ),
        (
            "none.toml",
            &denies("context.project_state()").replace("\"gate\"", "\"none\""),
        ),
        (
            "type.toml",
            &denies("context.project_state('a') > 3").replace("\"gate\"", "\"type\""),
        ),
        (
            "name.toml",
            &denies("context.project_stat('a')").replace("\"gate\"", "\"name\""),
        ),
    ])
    .await;
    let tests = rig
        .call("rules.test", json!({ "rule": "gate" }))
        .await
        .unwrap();
    assert!(!tests.to_string().contains("\"failure\""), "{tests:#}");
    let problems = rig.problems().await;
    for file in ["number.toml", "none.toml", "type.toml", "name.toml"] {
        assert!(
            problems.iter().any(|problem| problem.contains(file)),
            "{file}: {problems:#?}"
        );
    }
    assert_eq!(problems.len(), 4, "{problems:#?}");
}
