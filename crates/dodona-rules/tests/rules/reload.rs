//! Files that change while events flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::rig::{Rig, rule};

/// How many rules there are at each event.
const RULES: usize = 3;

/// A rule of a version: two actions that say it.
fn version(rule: usize, version: usize) -> String {
    let action = format!("[[actions]]\ntype = \"notify_self\"\nmessage = \"{version}\"\n");
    format!(
        "[rule]\nid = \"r{rule}\"\ntrigger = \"on_tool_call\"\n\
         surfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n\
         [condition]\nexpression = \"{version} == {version}\"\n{action}{action}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads_while_events_flow_and_no_event_is_judged_by_half_a_set() {
    let rig = Arc::new(Rig::with(&[]).await);
    for number in 0..RULES {
        rig.put(&format!("r{number}.toml"), &version(number, 0));
    }
    rig.reload().await;
    let done = Arc::new(AtomicBool::new(false));
    let (flowing, until) = (Arc::clone(&rig), Arc::clone(&done));
    let flow = tokio::spawn(async move {
        let mut events = 0;
        while !until.load(Ordering::Relaxed) {
            flowing.echo("x").await.unwrap();
            events += 1;
        }
        events
    });
    for reload in 1..=1_000 {
        rig.put(
            &format!("r{}.toml", reload % RULES),
            &version(reload % RULES, reload),
        );
        rig.reload().await;
    }
    done.store(true, Ordering::Relaxed);
    let events: usize = flow.await.unwrap();
    let decided = rig.events("rules.decided").await;
    assert!(events > 0 && decided.len() >= events.min(1_000));
    let mut newest = 0_u64;
    for event in &decided {
        let rules = event.payload["rules"].as_array().unwrap();
        assert_eq!(rules.len(), RULES, "{event:#?}");
        for rule in rules {
            let said = |index: usize| rule["outcome"]["decisions"][index]["message"].as_str();
            assert_eq!(said(0), said(1), "{rule}");
            newest = newest.max(said(0).unwrap().parse().unwrap());
        }
    }
    assert!(newest > 0, "events saw new versions");
}

#[tokio::test]
async fn a_file_that_breaks_keeps_its_last_good_version_and_says_so() {
    let good = rule(
        "no",
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"first\"",
    );
    let rig = Rig::with(&[("no.toml", &good)]).await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "first");
    rig.put("no.toml", &good.replace("True", "Tru ="));
    rig.put(
        "other.toml",
        &good
            .replace("\"no\"", "\"other\"")
            .replace("first", "second"),
    );
    rig.reload().await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "first");
    assert!(rig.listed("rules/other").await.is_some(), "the others swap");
    let problems = rig.problems().await;
    assert!(problems[0].contains("no.toml:5:"), "{problems:?}");
    assert!(problems[1].contains("the last valid version stays in force"));
    rig.put("no.toml", &good.replace("first", "third"));
    rig.reload().await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "third");
    assert!(rig.problems().await.is_empty());
}

#[tokio::test]
async fn a_script_that_changes_is_read_again_and_one_that_appears_is_found() {
    let text = "[rule]\nid = \"s\"\ntrigger = \"on_tool_call\"\n[condition]\nscript = \"scripts/s.lua\"\n\
        [action]\ntype = \"deny\"\nmessage = \"no\"\n";
    let rig = Rig::with(&[("s.toml", text)]).await;
    assert!(rig.echo("x").await.is_ok());
    assert!(
        rig.problems().await[0]
            .contains("s.toml:5:10  error: failed to read script `scripts/s.lua`")
    );
    rig.put("scripts/s.lua", "return true");
    rig.reload().await;
    assert!(rig.echo("x").await.is_err());
    rig.put("scripts/s.lua", "return nil ");
    rig.reload().await;
    assert!(rig.echo("x").await.is_ok());
    assert!(rig.problems().await.is_empty());
}

#[tokio::test]
async fn a_projects_rules_are_asked_in_that_project_only() {
    let rig = Rig::with(&[]).await;
    let deny = rule(
        "no",
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"not here\"",
    );
    rig.put_in_project("a.toml", &deny);
    rig.trust("rules").await;
    rig.reload().await;
    assert_eq!(
        rig.echo("x").await.unwrap_err().message,
        "rule `no` of project `orchard` says: not here"
    );
    let request = rig.request("alice", "tools.echo", serde_json::json!({"text": "x"}));
    let outside = dodona_hub::Request {
        project: None,
        ..request
    };
    let said: Value = rig.hub().call(outside).await.unwrap();
    assert_eq!(said["text"], "x");
}
