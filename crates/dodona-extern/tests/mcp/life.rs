//! The life of a server: cancelled, killed, changed, known from before.

use std::path::Path;

use dodona_testkit::TestHub;
use serde_json::json;

use crate::support::{hub, is_alive, log, mount, python, text, until, with_good};

fn lines(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().count()
}

async fn pid(hub: &TestHub) -> String {
    text(hub, "good.pid", json!({})).await
}

/// Begins work that counts into a file, and cancels it once it counts.
async fn cancel_work(hub: &TestHub, file: &Path, deaf: bool) {
    let params = json!({"file": file, "steps": 100_000, "deaf": deaf});
    let stream = hub.open("ada", "good.work", params).await.unwrap();
    until("the first step", || lines(file) > 0).await;
    drop(stream);
}

#[tokio::test]
async fn a_cancelled_call_ends_the_servers_work_and_not_the_server() {
    let hub = with_good("").await;
    let before = pid(&hub).await;
    let file = hub.home().join("steps");
    cancel_work(&hub, &file, false).await;
    let mut last = 0;
    until("the end of the work", || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let now = lines(&file);
        std::mem::replace(&mut last, now) == now
    })
    .await;
    assert_eq!(pid(&hub).await, before);
    hub.stop().await;
}

#[tokio::test]
async fn a_server_that_goes_on_with_a_cancelled_call_is_ended_and_comes_back() {
    let hub = with_good("").await;
    let before = pid(&hub).await;
    cancel_work(&hub, &hub.home().join("steps"), true).await;
    until("the end of the server", || !is_alive(&before)).await;
    assert_ne!(pid(&hub).await, before);
    hub.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_after_a_cancelled_call_is_ended_and_comes_back() {
    let hub = with_good("").await;
    let before = pid(&hub).await;
    let hanging = hub.open("ada", "good.hang", json!({})).await.unwrap();
    // The server reads one message after the other, so this comes after the other call.
    let other = hub
        .open("ada", "good.say", json!({"text": "x"}))
        .await
        .unwrap();
    drop(hanging);
    until("the end of the server", || !is_alive(&before)).await;
    // The call that it could not answer fails, and no other.
    assert!(other.collect().await.is_ok());
    assert_ne!(pid(&hub).await, before);
    hub.stop().await;
}

#[tokio::test]
async fn with_the_setting_a_cancelled_call_ends_the_process_at_once() {
    let hub = with_good("[server]\non_cancel = \"end\"\n").await;
    let before = pid(&hub).await;
    cancel_work(&hub, &hub.home().join("steps"), true).await;
    until("the end of the server", || !is_alive(&before)).await;
    assert_ne!(pid(&hub).await, before);
    hub.stop().await;
}

#[tokio::test]
async fn a_killed_server_fails_its_calls_alone_and_comes_back() {
    let hub = hub().await;
    let command = python("good.py", "");
    mount(&hub, &[("good", &command, ""), ("other", &command, "")]).await;
    let before = pid(&hub).await;
    let other = hub
        .open("ada", "other.work", json!({"steps": 40}))
        .await
        .unwrap();
    let lost = hub.call("ada", "good.crash", json!({})).await.unwrap_err();
    assert_eq!(lost.code.as_str(), "mcp.connection_lost");
    assert!(lost.retryable, "{lost}");
    assert_ne!(pid(&hub).await, before);
    let items = other.collect().await.unwrap();
    let done = serde_json::to_value(items.last().unwrap()).unwrap();
    assert_eq!(done["status"], "complete", "{done}");
    hub.stop().await;
}

#[tokio::test]
async fn a_grandchild_that_went_its_own_way_ends_with_the_server() {
    let hub = with_good("").await;
    let server = pid(&hub).await;
    let detached = text(&hub, "good.spawn", json!({})).await;
    assert!(is_alive(&detached), "{detached}");
    mount(&hub, &[]).await;
    until("the end of both", || {
        !is_alive(&server) && !is_alive(&detached)
    })
    .await;
    hub.stop().await;
}

#[tokio::test]
async fn other_tools_become_other_methods_without_a_restart() {
    let hub = with_good("").await;
    let before = pid(&hub).await;
    let missing = hub.call("ada", "good.juggle", json!({})).await.unwrap_err();
    assert_eq!(missing.code.as_str(), "rpc.method_not_found");
    text(&hub, "good.learn", json!({"name": "juggle"})).await;
    let deadline = tokio::time::Instant::now() + crate::support::PATIENCE;
    loop {
        match hub.call("ada", "good.juggle", json!({})).await {
            Ok(result) => break assert_eq!(result["text"], "juggle ran"),
            Err(_) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(pid(&hub).await, before);
    let lines = log(&hub, "good").await;
    assert!(
        lines.contains(&"server: other tools: +juggle".to_owned()),
        "{lines:?}"
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_server_that_is_known_is_started_when_it_is_needed() {
    let hub = with_good("").await;
    let hub = hub.restart().await;
    // Its tools are there, and it has said nothing yet.
    assert!(log(&hub, "good").await.is_empty());
    assert_eq!(text(&hub, "good.say", json!({"text": "x"})).await, "x");
    assert!(!log(&hub, "good").await.is_empty());
    hub.stop().await;
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let hub = hub().await;
    let servers = [
        ("missing", "no-such-program --now", ""),
        (
            "silent",
            "sleep 600",
            "[server]\nstart_timeout = \"500ms\"\n",
        ),
        ("talker", "echo hello", ""),
        ("typo", "sleep 1", "[server]\ntimeot = \"1s\"\n"),
        (
            "unset",
            "sleep 1",
            "[server.env]\nA = { env = \"DODONA_NO_SUCH\" }\n",
        ),
        ("nobody", "http://127.0.0.1:1/mcp", ""),
    ];
    mount(&hub, &servers).await;
    let listed = hub.call("ada", "plugins.list", json!({})).await.unwrap();
    let reason = |name: &str| {
        let plugins = listed["plugins"].as_array().unwrap();
        let plugin = plugins
            .iter()
            .find(|plugin| plugin["name"] == name)
            .unwrap();
        assert_eq!(plugin["state"], "failed");
        plugin["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("missing").contains("`no-such-program` could not be started"));
    let silent = reason("silent");
    assert!(
        silent.starts_with("it did not answer within 500ms (waited "),
        "{silent}"
    );
    assert!(
        reason("talker").contains("the process ended (exit status: 0)"),
        "{}",
        reason("talker")
    );
    assert!(reason("typo").contains("unknown field `timeot`"));
    assert!(reason("unset").contains("DODONA_NO_SUCH is not set"));
    assert!(
        reason("nobody").contains("no connection"),
        "{}",
        reason("nobody")
    );
    hub.stop().await;
}
