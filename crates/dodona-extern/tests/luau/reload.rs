//! Scripts that change while they are called.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dodona_hub::{PluginHub, Request};
use dodona_testkit::principal;
use serde_json::json;

use crate::support::{Home, ask, assert_active, status};

fn version(number: usize) -> String {
    format!(
        "local number = {number}
        dodona.method {{ name = 'number', doc = 'Tells its version.', read_only = true,
            run = function(ctx)
                ctx.call('echo.say', {{ text = 'x' }})
                return {{ first = number, second = number }}
            end }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_script_takes_effect_and_a_broken_one_leaves_the_last_good_one() {
    let home = Home::new();
    home.granted("versions", &["call:echo"], &version(1));
    let hub = home.start().await;
    let number = async || ask(&hub, "versions.number", json!({})).await.unwrap()["first"].clone();
    assert_eq!(number().await, 1);
    home.script("versions", &version(2));
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_eq!(number().await, 2);
    for broken in ["local x =", "error('no')", "dodona.method { name = 'x' }"] {
        home.script("versions", broken);
        ask(&hub, "plugins.reload", json!({})).await.unwrap();
        let reason = status(&hub, "versions").reason.unwrap();
        assert!(reason.contains("main.luau:1"), "{reason}");
        assert!(
            reason.contains("the last good version stays active"),
            "{reason}"
        );
        assert_eq!(number().await, 2);
    }
    home.script("versions", &version(3));
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_active(&hub, "versions");
    assert_eq!(number().await, 3);
    hub.stop().await;
}

/// Each call is of one version from its beginning to its end, and none fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_reloads_while_calls_flow() {
    let home = Home::new();
    home.granted("versions", &["call:echo"], &version(0));
    let hub = home.start().await;
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (hub, over) = (PluginHub::clone(&hub), Arc::clone(&over));
            tokio::spawn(async move {
                let (mut calls, mut last) = (0_u64, 0);
                while !over.load(Ordering::SeqCst) {
                    let request = Request::new(principal("ada"), "versions.number", json!({}));
                    let answer = hub.call(request).await.unwrap();
                    assert_eq!(answer["first"], answer["second"]);
                    let number = answer["first"].as_u64().unwrap();
                    assert!(number >= last, "{number} after {last}");
                    (calls, last) = (calls + 1, number);
                }
                calls
            })
        })
        .collect();
    for number in 1..=100 {
        home.script("versions", &version(number));
        let reloaded = ask(&hub, "plugins.reload", json!({})).await.unwrap();
        assert_eq!(reloaded["activated"], json!(["versions"]), "{reloaded}");
    }
    let last = ask(&hub, "versions.number", json!({})).await.unwrap();
    assert_eq!(last["first"], 100);
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_is_in_use_without_a_word() {
    let home = Home::new();
    home.granted("versions", &["call:echo"], &version(1));
    let watching = dodona_testkit::TestHub::builder()
        .config(|config| config.watch = Some(std::time::Duration::from_millis(20)));
    let hub = home.start_with(watching).await;
    for number in 2..=4 {
        home.script("versions", &version(number));
        until(&format!("version {number} runs"), async || {
            let answer = ask(&hub, "versions.number", json!({})).await.unwrap();
            answer["first"] == number
        })
        .await;
    }
    home.plugin(
        "newcomer",
        "dodona.method { name = 'x', doc = 'X.', run = function() end }",
    );
    until("the new plugin is found", async || {
        ask(&hub, "newcomer.x", json!({})).await.is_ok()
    })
    .await;
    hub.stop().await;
}

/// Waits for a condition, at most a minute.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_so().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not within 60 s: {what}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
