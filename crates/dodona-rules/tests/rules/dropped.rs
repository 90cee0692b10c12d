//! A notification that is dropped is shown as dropped, and those of core rules never are.

use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, notice};

/// A text that takes up much of the room for notifications, and is another one each turn.
fn long(id: &str) -> String {
    format!(
        "{id} {{{{ context.turn.number }}}} {}",
        "many words ".repeat(120)
    )
}

#[tokio::test]
async fn notifications_dropped_at_the_inbox_are_logged_as_dropped() {
    let rig = Rig::with(&[]).await;
    for number in 0..10 {
        let id = format!("flood{number}");
        let text = notice(&id, "on_turn_start", "True", &long(&id));
        rig.put_in_project(&format!("{id}.toml"), &text);
    }
    rig.trust("rules").await;
    // Ten are added and a few delivered in each turn, until a hundred are waiting.
    for _ in 0..16 {
        rig.ask([Reply::text("Done.")]).await;
    }
    let log = rig.log().await;
    let (dropped, fired): (Vec<_>, Vec<_>) = log.iter().partition(|one| one["dropped"].is_string());
    assert_eq!(log.len(), 160);
    assert!(!dropped.is_empty());
    for one in &dropped {
        assert_eq!(one["fired"], false, "{one}");
        assert_eq!(one["executed"], false, "{one}");
        assert_eq!(one["decisions"], json!([]), "{one}");
        let reason = "100 notifications of `project-rules` are waiting in this conversation";
        assert_eq!(one["dropped"], reason);
    }
    assert!(fired.iter().all(|one| one["fired"] == true));
    // The last rule is the last in the queue of every turn.
    let last: Vec<_> = log
        .iter()
        .filter(|one| one["rule"] == "rules/flood9")
        .collect();
    let drops = last.iter().filter(|one| one["dropped"].is_string()).count();
    assert!(drops > 0, "{last:#?}");
    let liveness = rig.listed("rules/flood9").await.unwrap()["liveness"].clone();
    assert_eq!(liveness["dropped"], json!(drops), "{liveness}");
    assert_eq!(liveness["fired"], json!(16 - drops), "{liveness}");
    let params = json!({ "rule": "flood9", "limit": 16 });
    let explained = rig.call("rules.explain", params).await.unwrap();
    let events = explained["events"].as_array().unwrap();
    let shown = events.iter().filter(|event| event["verdict"] == "dropped");
    assert_eq!(shown.count(), drops, "{explained:#}");
    assert_eq!(events[0]["verdict"], "dropped");
    let why = events[0]["why"].as_str().unwrap();
    assert!(
        why.starts_with("notification dropped: 100 notifications"),
        "{why}"
    );
    let doctor = rig
        .call("rules.doctor", json!({}))
        .await
        .unwrap()
        .to_string();
    assert!(
        doctor.contains("of its notifications were dropped"),
        "{doctor}"
    );
}

#[tokio::test]
async fn a_core_notification_is_delivered_in_a_flood_of_the_users_own() {
    let core = notice(
        "core",
        "on_turn_start",
        "True",
        "core says {{ context.turn.number }}",
    );
    let core = core
        .replace("trigger =", "core = true\npriority = 1\ntrigger =")
        .replace(
            "type = \"notify_self\"",
            "type = \"notify_self\"\npriority = \"low\"",
        );
    let rig = Rig::with(&[("core.toml", &core)]).await;
    for number in 0..400 {
        let id = format!("flood{number:03}");
        let text = notice(&id, "on_turn_start", "True", &long(&id));
        let text = text.replace(
            "type = \"notify_self\"",
            "type = \"notify_self\"\npriority = \"critical\"",
        );
        rig.put(&format!("{id}.toml"), &text);
    }
    rig.reload().await;
    for turn in 1..=4 {
        rig.ask([Reply::text("Done.")]).await;
        let sent = rig.sent().pop().unwrap();
        assert!(sent.contains(&format!("core says {turn}")), "turn {turn}");
    }
    let log = rig.log().await;
    let dropped = log.iter().filter(|one| one["dropped"].is_string());
    assert!(dropped.clone().count() > 500);
    assert!(dropped.clone().all(|one| one["rule"] != "rules/core"));
    let fired = rig
        .call("rules.log", json!({ "rule": "core", "limit": 100 }))
        .await;
    assert_eq!(fired.unwrap()["executions"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_notification_of_a_call_outside_of_a_query_is_logged_as_dropped() {
    let rig = Rig::with(&[(
        "a.toml",
        &notice("tells", "on_tool_complete", "True", "done"),
    )])
    .await;
    rig.echo("x").await.unwrap();
    let log = rig.log().await;
    assert_eq!(log.len(), 1, "{log:#?}");
    assert_eq!(log[0]["fired"], false, "{log:#?}");
    assert_eq!(log[0]["dropped"], "the call was made outside of a query");
}
