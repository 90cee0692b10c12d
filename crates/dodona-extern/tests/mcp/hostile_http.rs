//! Addresses that do what they should not. Whatever they do, it is their own calls that fail.

use std::process::Command;

use dodona_proto::{HubStreamItem, ItemBody};
use dodona_testkit::Peer;
use serde_json::{Value, json};

use crate::support::{hub, mount, server, small, text};

/// Calls a server that misbehaves in some way, and tells how the call ended. Another one does its
/// work beside it.
async fn go(mode: &str, settings: &str) -> Value {
    let mut command = Command::new("python3");
    command.arg("-I").arg(server("hostile_http.py")).arg(mode);
    let peer = Peer::start(&mut command).unwrap();
    let hub = hub().await;
    let address = format!("{}/mcp", peer.url());
    mount(
        &hub,
        &[("bad", &address, settings), ("small", &small(), "")],
    )
    .await;
    let stream = hub.open("ada", "bad.go", json!({})).await.unwrap();
    let said = text(&hub, "small.say", json!({"text": "here"})).await;
    assert_eq!(said, "here");
    let items = stream.collect().await.unwrap();
    hub.stop().await;
    let is_progress = |item: &&HubStreamItem| matches!(item.body, ItemBody::Progress { .. });
    // At most ten a second, for three seconds and whatever a busy machine makes of them.
    assert!(items.iter().filter(is_progress).count() < 100, "{mode}");
    items.iter().map(|item| json!(item)).collect()
}

const SMALL: &str = "[server]\nmax_message = 1000000\ntimeout = \"60s\"\n";
const SHORT: &str = "[server]\ntimeout = \"3s\"\n";

#[tokio::test]
async fn an_answer_without_end_is_read_to_its_bound_and_no_further() {
    for mode in ["giant", "giant_event"] {
        let told = go(mode, SMALL).await.to_string();
        assert!(told.contains("\"failed\""), "{mode}: {told}");
        assert!(!told.contains("limit.deadline"), "{mode}: {told}");
    }
}

#[tokio::test]
async fn progress_without_end_and_letters_one_by_one_end_with_the_time_of_the_call() {
    for mode in ["progress", "loris"] {
        let told = go(mode, SHORT).await.to_string();
        assert!(told.contains("limit.deadline"), "{mode}: {told}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let told = go("redirect", SMALL).await.to_string();
    assert!(told.contains("\"failed\""), "{told}");
    assert!(!told.contains("limit.deadline"), "{told}");
}
