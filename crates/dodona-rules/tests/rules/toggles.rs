//! Switching rules on and off, and what cannot be switched.

use dodona_hub::Request;
use dodona_proto::ErrorCode;
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, rule, until};

fn refuse(id: &str, head: &str) -> String {
    rule(
        id,
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"no\"",
    )
    .replace("trigger", &format!("{head}\ntrigger"))
}

#[tokio::test]
async fn a_rule_that_is_switched_off_is_off_at_once_for_that_user_and_for_good() {
    let rig = Rig::with(&[("a.toml", &refuse("no", ""))]).await;
    assert!(rig.echo("x").await.is_err());
    let off = rig
        .call("rules.disable", json!({"rule": "no"}))
        .await
        .unwrap();
    assert_eq!(off, json!({"rule": "rules/no", "enabled": false}));
    assert!(rig.echo("x").await.is_ok());
    let bob = rig.request("bob", "tools.echo", json!({"text": "x"}));
    let bob = Request {
        project: None,
        ..bob
    };
    assert!(
        rig.hub().call(bob).await.is_err(),
        "bob did not switch it off"
    );
    let rig = rig.restart().await;
    assert!(rig.echo("x").await.is_ok());
    let listed = rig.listed("rules/no").await.unwrap();
    assert_eq!(
        (&listed["enabled"], &listed["switched_off"]),
        (&json!(false), &json!(true))
    );
    rig.call("rules.enable", json!({"rule": "rules/no"}))
        .await
        .unwrap();
    assert!(rig.echo("x").await.is_err());
}

#[tokio::test]
async fn no_path_switches_a_core_rule_off() {
    let rig = Rig::with(&[("a.toml", &refuse("no", ""))]).await;
    // It was switched off before it became core.
    rig.call("rules.disable", json!({"rule": "no"}))
        .await
        .unwrap();
    assert!(rig.echo("x").await.is_ok());
    rig.put("a.toml", &refuse("no", "core = true"));
    rig.reload().await;
    assert!(rig.echo("x").await.is_err());
    let error = rig
        .call("rules.disable", json!({"rule": "no"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    // Nor does a project's rule of the same name.
    rig.put_in_project("a.toml", &refuse("no", "enabled = false"));
    rig.trust("rules").await;
    rig.reload().await;
    assert!(rig.echo("x").await.is_err());
    let problems = rig.problems().await;
    assert!(
        problems[0].contains("`rules/no` is already defined in"),
        "{problems:?}"
    );
    // Nor does it itself.
    rig.put("a.toml", &refuse("no", "core = true\nenabled = false"));
    rig.reload().await;
    assert!(rig.echo("x").await.is_err());
    assert!(rig.listed("rules/no").await.unwrap()["core"] == true);
}

#[tokio::test]
async fn a_rule_that_its_file_switches_off_is_switched_on_there() {
    let rig = Rig::with(&[("a.toml", &refuse("no", "enabled = false"))]).await;
    assert!(rig.echo("x").await.is_ok());
    let error = rig
        .call("rules.enable", json!({"rule": "no"}))
        .await
        .unwrap_err();
    assert!(
        error
            .hint_text()
            .unwrap()
            .contains("set `enabled = true` in")
    );
    rig.put("a.toml", &refuse("no", "enabled = true"));
    rig.reload().await;
    assert!(rig.echo("x").await.is_err());
}

#[tokio::test]
async fn a_rule_that_is_not_there_is_told_with_the_one_that_was_meant() {
    let rig = Rig::with(&[("a.toml", &refuse("no-echo", ""))]).await;
    let error = rig
        .call("rules.disable", json!({"rule": "no-ecko"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(error.hint_text(), Some("did you mean `rules/no-echo`?"));
    let error = rig
        .call("rules.show", json!({"rule": "../x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
}

#[tokio::test]
async fn a_toggle_holds_while_events_flow() {
    let rig = std::sync::Arc::new(Rig::with(&[("a.toml", &refuse("no", ""))]).await);
    let flowing = std::sync::Arc::clone(&rig);
    let flow = tokio::spawn(async move {
        loop {
            let _ = flowing.echo("x").await;
        }
    });
    for _ in 0..10 {
        rig.call("rules.disable", json!({"rule": "no"}))
            .await
            .unwrap();
        assert!(rig.echo("x").await.is_ok());
        rig.call("rules.enable", json!({"rule": "no"}))
            .await
            .unwrap();
        assert!(rig.echo("x").await.is_err());
    }
    flow.abort();
}

#[tokio::test]
async fn an_edit_holds_by_itself_while_events_flow() {
    let rig = std::sync::Arc::new(Rig::with(&[]).await);
    assert!(rig.echo("x").await.is_ok());
    for round in 0..3 {
        rig.put("a.toml", &refuse("no", ""));
        let asked = std::sync::Arc::clone(&rig);
        until("the rule is there", move || {
            let rig = std::sync::Arc::clone(&asked);
            async move { rig.echo("x").await.is_err() }
        })
        .await;
        rig.remove("a.toml");
        let asked = std::sync::Arc::clone(&rig);
        until("the rule is gone", move || {
            let rig = std::sync::Arc::clone(&asked);
            async move { rig.echo("x").await.is_ok() }
        })
        .await;
        assert!(round < 3);
    }
}

#[tokio::test]
async fn a_rule_that_is_switched_off_does_not_count_as_asked() {
    let quiet = rule(
        "quiet",
        "on_tool_call",
        "False",
        "type = \"log\"\nmessage = \"x\"",
    );
    let other = quiet.replace("quiet", "other");
    let rig = Rig::with(&[("a.toml", &quiet), ("b.toml", &other)]).await;
    let asked = async |rule: &str| {
        let listed = rig.listed(rule).await.unwrap();
        listed["liveness"]["evaluated"].as_u64().unwrap()
    };
    rig.echo("x").await.unwrap();
    assert_eq!(asked("rules/quiet").await, 1);
    let off = json!({ "rule": "quiet" });
    rig.call("rules.disable", off.clone()).await.unwrap();
    for _ in 0..5 {
        rig.echo("x").await.unwrap();
    }
    // Another user has not switched it off, and has counts of his own.
    let bob = dodona_testkit::principal("bob");
    let request = Request::new(bob, "tools.echo", json!({ "text": "x" }));
    rig.hub().call(request).await.unwrap();
    assert_eq!(asked("rules/quiet").await, 1);
    assert_eq!(asked("rules/other").await, 6);
    rig.call("rules.enable", off).await.unwrap();
    rig.echo("x").await.unwrap();
    assert_eq!(asked("rules/quiet").await, 2);
}

/// A plugin `budget` that only has a rule.
async fn install(rig: &Rig, settings: &str, text: &str) {
    let plugin = rig.config_dir().join("plugins/budget");
    let manifest = format!(
        "[plugin]\nid = \"budget\"\nname = \"Budget\"\nversion = \"1.0.0\"\ndescription = \"x\"\n\
         [rules]\ninclude = [\"rules/*.toml\"]\n{settings}"
    );
    crate::rig::put(&plugin, "manifest.toml", &manifest);
    crate::rig::put(&plugin.join("rules"), "most.toml", text);
    rig.call("plugins.reload", json!({})).await.unwrap();
    rig.reload().await;
}

#[tokio::test]
async fn what_a_plugins_rule_says_is_said_in_the_plugins_name() {
    let rig = Rig::with(&[(
        "own.toml",
        &crate::rig::notice("own", "on_turn_start", "True", "Mine."),
    )])
    .await;
    let text = rule(
        "most",
        "on_turn_start",
        "True",
        "type = \"notify_self\"\nmessage = \"Yours.\"",
    )
    .replace("[action]", "[[actions]]");
    let text = format!("{text}[[actions]]\ntype = \"emit_event\"\nevent_type = \"custom.turn\"\n");
    install(&rig, "", &text).await;
    let answer = rig.ask([Reply::text("One.")]).await;
    let mut told: Vec<[&str; 3]> = (answer.data("Notification").into_iter())
        .map(|told| ["plugin", "rule", "message"].map(|field| told[field].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    let mine = ["rules", "rules/own", "Mine."];
    assert_eq!(
        told,
        [
            [
                "budget",
                "budget/most",
                "rule `most` of plugin `budget` says: Yours."
            ],
            mine
        ]
    );
    let events = rig.events("custom").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].source, "budget");
}

#[tokio::test]
async fn settings_of_a_plugin_are_what_the_user_chose() {
    let rig = Rig::with(&[]).await;
    let text = rule(
        "most",
        "on_turn_start",
        "context.turn.number >= settings.most",
        "type = \"log\"\nmessage = \"{{ settings.most }}\"",
    );
    let settings =
        "[settings.most]\ntype = \"integer\"\ndefault = 2\ndescription = \"How many turns\"\n";
    install(&rig, settings, &text).await;
    let listed = rig.listed("budget/most").await.unwrap();
    assert_eq!(listed["scope"], json!({"plugin": "budget"}));
    rig.ask([Reply::text("One.")]).await;
    assert!(rig.log().await.is_empty());
    rig.ask([Reply::text("Two.")]).await;
    assert_eq!(rig.log().await.len(), 1);
    let choice = json!({"plugin": "budget", "setting": "most", "value": 4});
    rig.call("plugins.set", choice).await.unwrap();
    rig.ask([Reply::text("Three.")]).await;
    assert_eq!(rig.log().await.len(), 1);
    rig.ask([Reply::text("Four.")]).await;
    let log = rig.log().await;
    assert_eq!(log[1]["decisions"][0]["message"], "4");
    // A plugin that is switched off takes its rules along.
    rig.call("plugins.disable", json!({"plugin": "budget"}))
        .await
        .unwrap();
    rig.reload().await;
    assert!(rig.listed("budget/most").await.is_none());
}

#[tokio::test]
async fn the_plugin_itself_cannot_be_switched_off_and_its_core_rules_with_it() {
    let rig = Rig::with(&[("a.toml", &refuse("no", "core = true"))]).await;
    let off = rig
        .call("plugins.disable", json!({"plugin": "rules"}))
        .await;
    assert_eq!(off.unwrap_err().message, "`rules` is always active");
    for entry in [
        "enabled = false\nmodule = \"builtin:rules\"",
        "enabled = \"false\"\nmodule = \"builtin:rules\"",
        "enabled = true\nmodule = \"builtin:rules\"\ncapabilities = []",
        "enabled = true\nmodule = \"dir:plugins/other\"",
    ] {
        let roster = format!("[plugin.rules]\n{entry}\n");
        crate::rig::put(&rig.config_dir(), "plugins.toml", &roster);
        rig.call("plugins.reload", json!({})).await.unwrap();
        let error = rig.echo("x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{entry}");
        let listed = rig.call("plugins.list", json!({})).await.unwrap();
        let told = listed["problems"].to_string();
        assert!(told.contains("`rules` is always active"), "{told}");
    }
}

#[tokio::test]
async fn a_broken_file_of_settings_takes_no_rule_away_and_is_told() {
    let rig = Rig::with(&[("a.toml", &refuse("no", ""))]).await;
    let own = "[plugin.rules]\nenabled = true\nmodule = \"builtin:rules\"\n";
    let outside = format!("{own}config_file = \"../elsewhere.toml\"\n");
    for (roster, settings) in [("", "this is = = broken"), (&*outside, "")] {
        crate::rig::put(&rig.config_dir(), "plugins.toml", roster);
        crate::rig::put(&rig.config_dir().join("plugins"), "rules.toml", settings);
        rig.call("plugins.reload", json!({})).await.unwrap();
        let error = rig.echo("x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{roster}{settings}");
        let listed = rig.call("plugins.list", json!({})).await.unwrap();
        let told = listed["problems"].to_string();
        let what = if roster.is_empty() {
            "rules.toml"
        } else {
            "elsewhere.toml"
        };
        assert!(told.contains(what), "{listed}");
    }
}
