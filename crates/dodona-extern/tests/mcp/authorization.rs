//! Servers that want to know who asks.

use std::path::Path;
use std::process::Command;

use dodona_testkit::{Peer, TestHub};
use serde_json::{Value, json};

use crate::support::{hub, log, mount, server, text};

const TOKEN: &str = "a-token-that-nobody-shall-see";

fn guarded(challenge: &str) -> Peer {
    let mut command = Command::new("python3");
    command.arg("-I").arg(server("guarded.py"));
    command.env("TOKEN", TOKEN).env("CHALLENGE", challenge);
    Peer::start(&mut command).unwrap()
}

async fn mounted(peer: &Peer, settings: &str) -> (TestHub, Value) {
    let hub = hub().await;
    mount(
        &hub,
        &[("tracker", &format!("{}/mcp", peer.url()), settings)],
    )
    .await;
    let told = hub.call("ada", "plugins.info", json!({"plugin": "tracker"}));
    let told = told.await.unwrap();
    (hub, told)
}

#[tokio::test]
async fn a_header_from_a_file_opens_the_door_and_is_told_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    secret(&file);
    let settings = format!(
        "[server.headers]\nauthorization = {{ file = {}, prefix = \"Bearer \" }}\n",
        json!(file)
    );
    let peer = guarded("Bearer");
    let (hub, told) = mounted(&peer, &settings).await;
    assert_eq!(told["state"], "active", "{told}");
    assert_eq!(text(&hub, "tracker.say", json!({"text": "in"})).await, "in");
    let lines = log(&hub, "tracker").await;
    assert!(!told.to_string().contains(TOKEN), "{told}");
    assert!(!lines.iter().any(|line| line.contains(TOKEN)), "{lines:?}");
    hub.stop().await;
}

#[tokio::test]
async fn without_one_the_status_says_what_to_set() {
    let wrong = "[server.headers]\nauthorization = \"Bearer something-else\"\n";
    for (challenge, settings) in [("Bearer realm=\"x\"", ""), ("", ""), ("Bearer", wrong)] {
        let peer = guarded(challenge);
        let (hub, told) = mounted(&peer, settings).await;
        assert_eq!(told["state"], "failed", "{told}");
        let reason = told["reason"].as_str().unwrap();
        assert!(
            reason.contains("`[server.headers]`"),
            "{challenge}: {reason}"
        );
        hub.stop().await;
    }
}

#[cfg(unix)]
fn secret(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, TOKEN).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[cfg(not(unix))]
fn secret(file: &Path) {
    std::fs::write(file, TOKEN).unwrap();
}
