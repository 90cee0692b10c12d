//! Start, reload and end of a process.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, ask, ask_until, assert_active, is_alive, until};

const DECLARES: &str = r#"
[[process.methods]]
name = "pids"
doc = "Return the ids of the process and of a child that has left its group."
"#;

const PROGRAM: &str = r#"
child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
VERSION = 1
def call(request): return {"own": os.getpid(), "child": child.pid, "version": VERSION}
serve(call=call)
"#;

async fn pids(hub: &dodona_testkit::TestHub) -> (Value, Value) {
    let mut told = ask(hub, "parent.pids", json!({})).await.unwrap();
    (told["own"].take(), told["child"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_and_everything_below_it_ends_with_its_plugin() {
    let home = Home::new();
    home.plugin("parent", &[], DECLARES, PROGRAM);
    let hub = home.start().await;
    let (own, child) = pids(&hub).await;
    assert!(is_alive(&own) && is_alive(&child));
    ask(&hub, "plugins.disable", json!({"plugin": "parent"}))
        .await
        .unwrap();
    until("a disabled plugin's process runs on", || {
        !is_alive(&own) && !is_alive(&child)
    })
    .await;
    ask(&hub, "plugins.enable", json!({"plugin": "parent"}))
        .await
        .unwrap();
    let (own, child) = pids(&hub).await;
    hub.stop().await;
    until("the process outlives the hub", || {
        !is_alive(&own) && !is_alive(&child)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_program_takes_the_place_of_the_old_one() {
    let home = Home::new();
    home.plugin("parent", &[], DECLARES, PROGRAM);
    let hub = home.start().await;
    let (own, _) = pids(&hub).await;
    home.program("parent", &PROGRAM.replace("VERSION = 1", "VERSION = 2"));
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_active(&hub, "parent");
    assert_eq!(
        ask_until(&hub, "parent.pids", json!({})).await["version"],
        2
    );
    until("the old process runs on", || !is_alive(&own)).await;
    // Nothing changed: nothing is started.
    let (own, _) = pids(&hub).await;
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_eq!(pids(&hub).await.0, own);
    // A broken one leaves the last good one running.
    home.program("parent", "sys.exit(1)");
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_eq!(pids(&hub).await.0, own);
    hub.stop().await;
}

/// The variable that makes this test the one that is killed.
const VICTIM: &str = "DODONA_VICTIM";
const MARK: &str = "started: ";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_process_outlives_a_server_that_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let home = Home::new();
        home.plugin("parent", &[], DECLARES, PROGRAM);
        let hub = home.start().await;
        let (own, child) = pids(&hub).await;
        println!("{MARK}{own} {child} {}", home.path().display());
        // Longer than the test waits that kills this process.
        tokio::time::sleep(Duration::from_secs(300)).await;
        return;
    }
    let name = "life::nothing_of_a_process_outlives_a_server_that_is_killed";
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
    let line = line.expect("the victim prints what it started");
    let words: Vec<&str> = line.split(' ').collect();
    let pids: Vec<Value> = words[..2]
        .iter()
        .map(|pid| pid.parse::<u64>().unwrap().into())
        .collect();
    assert!(pids.iter().all(is_alive), "{pids:?}");
    // With SIGKILL: it has no chance to do anything about it.
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the process outlives the server", || {
        !pids.iter().any(is_alive)
    })
    .await;
    let _ = std::fs::remove_dir_all(words[2]);
}
