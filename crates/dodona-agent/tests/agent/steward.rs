//! The example plugin `steward`: every kind of hook, through a real hub, agent and model server.

#[path = "../../examples/steward/hooks.rs"]
mod hooks;
#[path = "../../examples/steward/plugin.rs"]
mod plugin;

use std::sync::Arc;

use dodona_proto::{DoneStatus, HookPoint};
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::talk::{Setup, Talk};
use hooks::HIDDEN;
use plugin::StewardPlugin;

async fn talk() -> Talk {
    let setup = Setup {
        plugins: vec![Arc::new(StewardPlugin)],
        ..Setup::default()
    };
    Talk::set_up(setup, |_| {}).await
}

/// What the newest request told of each tool.
fn results(talk: &Talk) -> Vec<String> {
    let messages = talk.sent();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools
        .map(|tool| tool["content"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_question_meets_every_hook_of_the_example() {
    let talk = talk().await;
    talk.server.reply(
        Reply::stream()
            .tool_call(
                "c1",
                "kit_echo",
                &[r#"{"text":"ask ann@example.org first"}"#],
            )
            .tool_call("c2", "kit_echo", &[r#"{"text":"archive/1999.md"}"#]),
    );
    talk.server.reply(Reply::text("Done."));
    let answer = talk.ask("Who knows?").await;
    assert_eq!(answer.status(), DoneStatus::Complete);

    // Chain: the prompt. Collect: the tools.
    let request = talk.server.last_request();
    let system = talk.sent()[0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("House rules: name the file"), "{system}");
    let tools = request.body["tools"].as_array().unwrap();
    let offered = tools
        .iter()
        .find(|tool| tool["function"]["name"] == "steward_diary");
    assert_eq!(
        offered.unwrap()["function"]["description"],
        "How many turns were taken so far, with how many tools."
    );

    // Transform: what a tool said. Gate: what it was kept from.
    assert_eq!(answer.endings(), ["success", "denied"]);
    let told = results(&talk);
    assert!(told[0].contains(&format!("ask {HIDDEN} first")), "{told:?}");
    assert!(
        told[1].contains("the folder `archive` is closed"),
        "{told:?}"
    );

    // Observe, async: what it wrote.
    let diary = talk.call("steward.diary", json!({})).await.unwrap();
    assert_eq!(diary, json!({"turns": 2, "tools": 2}));
}

#[tokio::test]
async fn the_setting_of_the_example_is_each_users_own_and_holds_at_once() {
    let talk = talk().await;
    let mine = json!({"plugin": "steward", "setting": "closed_folder", "value": "drafts"});
    talk.call("plugins.set", mine).await.unwrap();
    let touch = async |path: &str| talk.call("kit.echo", json!({"text": path})).await;
    let error = touch("drafts/1.md").await.unwrap_err();
    assert!(error.message.contains("the folder `drafts` is closed"));
    assert!(touch("archive/1.md").await.is_ok());

    let common = json!({"plugin": "steward", "setting": "closed_folder"});
    talk.call("plugins.unset", common).await.unwrap();
    assert!(touch("drafts/1.md").await.is_ok());
    assert!(touch("archive/1.md").await.is_err());
}

#[tokio::test]
async fn every_hook_of_the_example_is_in_its_place() {
    let talk = talk().await;
    let hooks = talk.hooks();
    let all = hooks.list();
    let own = all.iter().filter(|hook| hook.plugin.as_str() == "steward");
    let points: Vec<HookPoint> = own.map(|hook| hook.hook).collect();
    let expected = [
        HookPoint::DaemonServerRegister,
        HookPoint::ToolRegistryBuild,
        HookPoint::SystemPromptExtend,
        HookPoint::PreToolExecute,
        HookPoint::PostToolExecute,
        HookPoint::TurnCompleted,
    ];
    assert_eq!(points, expected);
    let kinds: std::collections::HashSet<_> = points.iter().map(|point| point.kind()).collect();
    assert_eq!(kinds.len(), 5, "a hook of every kind");
}
