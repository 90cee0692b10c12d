//! What is left of a server when the program that mounted it is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::{is_alive, text, until, with_good};

/// The variable that makes this test the one that is killed.
const VICTIM: &str = "DODONA_VICTIM";

/// What the victim's line begins with.
const MARK: &str = "mounted: ";

#[tokio::test]
async fn nothing_of_a_server_outlives_a_program_that_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        return wait_for_death().await;
    }
    let name = "killed::nothing_of_a_server_outlives_a_program_that_is_killed";
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap());
    let line = output.lines().map_while(Result::ok).find_map(|line| {
        let at = line.find(MARK)?;
        Some(line[at + MARK.len()..].to_owned())
    });
    let line = line.expect("the victim tells what it mounted");
    let pids: Vec<&str> = line.split(' ').collect();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    // With SIGKILL: it has no chance to do anything about it.
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the end of the server and its grandchild", || {
        !pids.iter().any(|pid| is_alive(pid))
    })
    .await;
}

/// Mounts a server that has a process of its own, and stays until it is killed.
async fn wait_for_death() {
    let hub = with_good("").await;
    let server = text(&hub, "good.pid", json!({})).await;
    let detached = text(&hub, "good.spawn", json!({})).await;
    println!("{MARK}{server} {detached}");
    // Longer than whoever shall kill it waits; without that somebody it ends by itself.
    tokio::time::sleep(Duration::from_secs(300)).await;
}
