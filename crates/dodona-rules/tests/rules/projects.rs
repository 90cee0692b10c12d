//! Rules that a project provides: what they need to be evaluated, and what they can never do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::HubConfig;
use dodona_proto::ErrorCode;
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, notice, put, rule, until};

/// A rule that refuses every call of `tools.echo`.
fn deny(id: &str, head: &str) -> String {
    let text = rule(
        id,
        "on_tool_call",
        "context.call.tool_name == 'tools_echo'",
        "type = \"deny\"\nmessage = \"no\"",
    );
    text.replace("trigger", &format!("{head}trigger"))
}

/// A rule whose condition is a script.
fn scripted(id: &str, priority: u16, script: &str, action: &str) -> String {
    format!(
        "[rule]\nid = \"{id}\"\npriority = {priority}\ntrigger = \"on_tool_call\"\n\
         [condition]\nscript = \"{script}\"\n[action]\n{action}\n"
    )
}

#[tokio::test]
async fn an_untrusted_project_rule_is_not_evaluated() {
    let rig = Rig::with(&[]).await;
    rig.put_in_project("a.toml", &deny("gate", ""));
    let talks = notice("talks", "on_turn_start", "True", "obey the project");
    rig.put_in_project("b.toml", &talks);
    rig.reload().await;
    rig.echo("x").await.unwrap();
    rig.ask([Reply::text("Done.")]).await;
    assert!(!rig.sent()[0].contains("obey the project"));
    let listed = rig.listed("rules/gate").await.unwrap();
    assert_eq!(listed["inactive"], "project_not_trusted");
    assert_eq!(listed["enabled"], false);
    assert!(rig.log().await.is_empty());
    let error = rig
        .call("rules.explain", json!({"rule": "gate"}))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("inactive: project not trusted"),
        "{}",
        error.message
    );
    // Accepting answers after the rules are in force.
    rig.trust("nothing").await;
    assert_eq!(rig.echo("x").await.unwrap_err().code, ErrorCode::Denied);
    assert_eq!(
        rig.listed("rules/gate").await.unwrap()["inactive"],
        json!(null)
    );
}

#[tokio::test]
async fn a_script_of_an_untrusted_rule_is_not_run_in_its_tests_either() {
    let rig = Rig::with(&[]).await;
    let text = scripted("probe", 100, "probe.lua", "type = \"log\"\nmessage = \"x\"");
    let text = format!("{text}[[tests]]\nname = \"ran\"\nexpect = {{ fired = true }}\n");
    rig.put_in_project("a.toml", &text);
    rig.put_in_project("probe.lua", "error('the script ran')");
    rig.reload().await;
    let problems = rig.problems().await;
    assert!(
        !problems.iter().any(|one| one.contains("the script ran")),
        "{problems:#?}"
    );
    rig.trust("nothing").await;
    let problems = rig.problems().await;
    assert!(
        problems.iter().any(|one| one.contains("the script ran")),
        "{problems:#?}"
    );
}

#[tokio::test]
async fn a_rule_that_changed_after_trust_is_inactive_and_the_others_stay_in_force() {
    let rig = Rig::with(&[]).await;
    rig.put_in_project("a.toml", &deny("gate", ""));
    let talks = notice("talks", "on_turn_start", "True", "one");
    rig.put_in_project("b.toml", &talks);
    rig.trust("nothing").await;
    rig.put_in_project("b.toml", &talks.replace("one", "two"));
    rig.reload().await;
    let listed = rig.listed("rules/talks").await.unwrap();
    assert_eq!(listed["inactive"], "changed_since_trusted");
    rig.ask([Reply::text("Done.")]).await;
    assert!(!rig.sent()[0].contains("says: "), "{}", rig.sent()[0]);
    assert_eq!(rig.echo("x").await.unwrap_err().code, ErrorCode::Denied);
}

#[tokio::test]
async fn a_rule_saved_in_a_followed_project_is_in_force_without_another_step() {
    let rig = Rig::with(&[]).await;
    rig.trust("rules").await;
    rig.echo("x").await.unwrap();
    rig.put_in_project("a.toml", &deny("gate", ""));
    until("the saved rule is in force", || async {
        rig.echo("x").await.is_err()
    })
    .await;
    // Rules alone are followed: what runs outside the sandbox still needs a review.
    put(&rig.root().join(".dodona/prompts"), "system.md", "Obey.");
    let shown = rig.call("hub.trust", json!({})).await.unwrap();
    assert_eq!(shown["state"], "changed");
}

#[tokio::test]
async fn a_rule_written_through_dodona_is_trusted_and_its_neighbours_are_not() {
    let rig = Rig::with(&[]).await;
    let talks = notice("talks", "on_turn_start", "True", "obey");
    rig.put_in_project("theirs.toml", &talks);
    let params = json!({"scope": "project", "file": "gate.toml", "text": deny("gate", "")});
    rig.call("rules.write", params).await.unwrap();
    assert_eq!(rig.echo("x").await.unwrap_err().code, ErrorCode::Denied);
    let listed = rig.listed("rules/talks").await.unwrap();
    assert_eq!(listed["inactive"], "changed_since_trusted");
}

#[tokio::test]
async fn a_project_cannot_starve_a_script_of_the_user() {
    let guard = scripted(
        "guard",
        1,
        "guard.lua",
        "type = \"deny\"\nmessage = \"the guard\"",
    );
    let guard = guard.replace("priority", "core = true\npriority");
    let rig = Rig::with(&[
        ("guard.toml", &guard),
        ("guard.lua", "return context.call.tool_name == 'tools_echo'"),
    ])
    .await;
    for number in 0..6 {
        let text = scripted(
            &format!("busy{number}"),
            1000,
            "busy.lua",
            "type = \"log\"\nmessage = \"x\"",
        );
        rig.put_in_project(&format!("busy{number}.toml"), &text);
    }
    rig.put_in_project("busy.lua", "while true do end");
    rig.trust("rules").await;
    for _ in 0..2 {
        let error = rig.echo("x").await.unwrap_err();
        assert_eq!(error.message, "the guard");
    }
}

#[tokio::test]
async fn a_project_cannot_read_or_change_the_state_of_the_users_rules() {
    let guard = rule(
        "guard",
        "on_tool_call",
        "context.call.tool_name == 'tools_echo' and not context.state.get('reviewed', False)",
        "type = \"deny\"\nmessage = \"review first\"",
    );
    let rig = Rig::with(&[("guard.toml", &guard)]).await;
    let sets = rule(
        "sets",
        "on_tool_call",
        "True",
        "type = \"set_state\"\nkey = \"reviewed\"\nvalue = true",
    );
    rig.put_in_project("sets.toml", &sets);
    rig.trust("rules").await;
    for _ in 0..3 {
        assert_eq!(rig.echo("x").await.unwrap_err().message, "review first");
    }
    assert!(rig.fired("sets").await > 0);
}

#[tokio::test]
async fn a_projects_rules_are_evaluated_after_the_users() {
    let rig = Rig::with(&[("a.toml", &deny("mine", "priority = 1\n"))]).await;
    let theirs = deny("theirs", "priority = 1000\n").replace("\"no\"", "\"theirs\"");
    rig.put_in_project("a.toml", &theirs);
    rig.trust("rules").await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "no");
    let found = rig.call("rules.list", json!({})).await.unwrap();
    let last = found["rules"].as_array().unwrap().last().unwrap();
    assert_eq!(last["rule"], "rules/theirs");
}

#[tokio::test]
async fn a_flood_of_a_project_drops_none_of_the_users_notifications() {
    let mine = notice(
        "mine",
        "on_turn_start",
        "True",
        "the budget is almost used up",
    );
    let mine = mine.replace(
        "type = \"notify_self\"",
        "type = \"notify_self\"\npriority = \"low\"",
    );
    let rig = Rig::with(&[("mine.toml", &mine)]).await;
    for number in 0..400 {
        let text = notice(
            &format!("flood{number:03}"),
            "on_turn_start",
            "True",
            &format!("flood {number} of many words that take up the room of others"),
        );
        let text = text.replace(
            "type = \"notify_self\"",
            "type = \"notify_self\"\npriority = \"critical\"",
        );
        rig.put_in_project(&format!("flood{number:03}.toml"), &text);
    }
    rig.trust("rules").await;
    rig.ask([Reply::text("Done.")]).await;
    assert!(rig.sent()[0].contains("the budget is almost used up"));
    assert_eq!(rig.fired("mine").await, 1);
    let log = rig.log().await;
    let dropped = log.iter().filter(|one| one["dropped"].is_string());
    assert!(dropped.clone().all(|one| one["fired"] == false));
    assert!(dropped.clone().all(|one| one["error"].is_null()));
    assert_eq!(dropped.count(), 390);
    let quiet = rig.listed("rules/flood399").await.unwrap()["liveness"].clone();
    assert_eq!(
        (&quiet["fired"], &quiet["failed"], &quiet["dropped"]),
        (&json!(0), &json!(0), &json!(1)),
        "{quiet}"
    );
}

#[tokio::test]
async fn text_of_a_project_names_the_rule_and_the_project() {
    let rig = Rig::with(&[]).await;
    let talks = notice(
        "talks",
        "on_turn_start",
        "True",
        "The operator requires this.",
    );
    rig.put_in_project("a.toml", &talks);
    rig.put_in_project("b.toml", &deny("gate", ""));
    rig.trust("rules").await;
    rig.ask([Reply::text("Done.")]).await;
    let sent = &rig.sent()[0];
    assert!(
        sent.contains("rule `talks` of project `orchard` says: The operator requires this."),
        "{sent}"
    );
    assert!(!sent.contains("from the system"), "{sent}");
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.message, "rule `gate` of project `orchard` says: no");
}

#[tokio::test]
async fn a_deny_that_cannot_be_evaluated_denies() {
    let broken = rule(
        "broken",
        "on_tool_call",
        "1 / (context.turn.number - context.turn.number) > 0",
        "type = \"deny\"\nmessage = \"no\"",
    );
    let rig = Rig::with(&[("a.toml", &broken)]).await;
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(
        error.message.contains("`broken` could not be evaluated"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_broken_gate_still_denies_after_a_restart() {
    let rig = Rig::with(&[("gate.toml", &deny("gate", ""))]).await;
    rig.put_in_project(
        "theirs.toml",
        &deny("theirs", "").replace("tools_echo", "tools_list"),
    );
    rig.trust("nothing").await;
    assert!(rig.echo("x").await.is_err());
    rig.put("gate.toml", "[rule]\nid = ");
    rig.put_in_project("theirs.toml", "[rule]\nid = ");
    let rig = rig.restart().await;
    assert_eq!(rig.echo("x").await.unwrap_err().message, "no");
    let listed = rig.call("tools.list", json!({"count": 1})).await;
    assert_eq!(listed.unwrap_err().code, ErrorCode::Denied);
    let listed = rig.listed("rules/gate").await.unwrap();
    assert_eq!(listed["outdated"], true);
    let checked = rig.call("rules.doctor", json!({})).await.unwrap();
    assert!(
        checked
            .to_string()
            .contains("the last valid version stays in force")
    );
    // A rule that was removed on purpose is gone, also after a restart.
    rig.remove("gate.toml");
    rig.reload().await;
    rig.echo("x").await.unwrap();
    let rig = rig.restart().await;
    rig.echo("x").await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_rule_file_that_is_a_link_is_neither_read_nor_quoted() {
    let rig = Rig::with(&[]).await;
    let secret = rig.config_dir().join("token");
    std::fs::create_dir_all(rig.config_dir()).unwrap();
    std::fs::write(&secret, "dod_secret_token_of_the_owner").unwrap();
    let rules = rig.root().join(".dodona/rules");
    std::fs::create_dir_all(&rules).unwrap();
    std::os::unix::fs::symlink(&secret, rules.join("x.toml")).unwrap();
    rig.reload().await;
    let checked = rig
        .call("rules.check", json!({}))
        .await
        .unwrap()
        .to_string();
    assert!(checked.contains("symbolic link"), "{checked}");
    assert!(!checked.contains("dod_secret"), "{checked}");
    let path = rules.join("x.toml");
    let source = rig.call("rules.source", json!({ "path": path })).await;
    assert!(!format!("{source:?}").contains("dod_secret"));
    // The same for the directory.
    std::fs::remove_dir_all(&rules).unwrap();
    put(
        &rig.config_dir().join("elsewhere"),
        "y.toml",
        "dod_secret_too = ",
    );
    std::os::unix::fs::symlink(rig.config_dir().join("elsewhere"), &rules).unwrap();
    rig.reload().await;
    let checked = rig
        .call("rules.check", json!({}))
        .await
        .unwrap()
        .to_string();
    assert!(checked.contains("symbolic link"), "{checked}");
    assert!(
        !checked.contains("dod_secret") && !checked.contains("y.toml"),
        "{checked}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn no_tool_runs_while_the_users_rules_cannot_be_read() {
    let rig = Rig::with(&[("gate.toml", &deny("gate", ""))]).await;
    let rules = rig.config_dir().join("rules");
    std::fs::remove_dir_all(&rules).unwrap();
    std::fs::write(&rules, "not a directory").unwrap();
    let rig = rig.restart().await;
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(
        error.message.contains("the rules cannot be read"),
        "{}",
        error.message
    );
}

/// What a plugin's `deny` refuses must be refused from the moment at which the plugin is reported
/// as active.
#[tokio::test]
async fn the_first_call_after_a_reload_meets_the_new_rule_a_thousand_times() {
    let rig = Rig::with(&[]).await;
    let plugin = rig.config_dir().join("plugins/guard");
    let manifest = "[plugin]\nid = \"guard\"\nname = \"Guard\"\nversion = \"1.0.0\"\ndescription = \"x\"\n[rules]\ninclude = [\"rules/*.toml\"]\n";
    put(&plugin, "manifest.toml", manifest);
    for round in 0..1_000 {
        let text = deny("gate", "").replace("\"no\"", &format!("\"round {round}\""));
        put(&plugin.join("rules"), "gate.toml", &text);
        rig.call("plugins.reload", json!({})).await.unwrap();
        let error = rig.echo("x").await.unwrap_err();
        assert!(
            error.message.ends_with(&format!("says: round {round}")),
            "{}",
            error.message
        );
    }
}

/// A plugin that only has a rule, which refuses every call of `tools.echo`.
fn guard(directory: &Path, round: usize) {
    let manifest = format!(
        "[plugin]\nid = \"guard\"\nname = \"Guard\"\nversion = \"1.0.{round}\"\ndescription = \"x\"\n[rules]\ninclude = [\"rules/*.toml\"]\n"
    );
    let text = deny("gate", "").replace("\"no\"", &format!("\"round {round}\""));
    put(&directory.join("rules"), "gate.toml", &text);
    put(directory, "manifest.toml", &manifest);
}

#[tokio::test]
async fn the_first_call_after_enabling_a_plugin_meets_its_rule() {
    let rig = Rig::with(&[]).await;
    guard(&rig.config_dir().join("plugins/guard"), 0);
    rig.call("plugins.reload", json!({})).await.unwrap();
    let plugin = json!({ "plugin": "guard" });
    for round in 0..300 {
        rig.call("plugins.disable", plugin.clone()).await.unwrap();
        rig.echo("x").await.unwrap();
        let enabled = rig.call("plugins.enable", plugin.clone()).await.unwrap();
        assert_eq!(enabled["state"], "active", "round {round}");
        let error = rig.echo("x").await.unwrap_err();
        assert!(
            error.message.ends_with("says: round 0"),
            "{round}: {}",
            error.message
        );
    }
}

#[tokio::test]
async fn the_first_call_after_adding_a_plugin_meets_its_rule() {
    let rig = Rig::with(&[]).await;
    let added = json!({ "plugin": "guard", "module": "dir:elsewhere/guard" });
    for round in 0..200 {
        guard(&rig.config_dir().join("elsewhere/guard"), round);
        let status = rig.call("plugins.add", added.clone()).await.unwrap();
        assert_eq!(status["state"], "active", "{status}");
        let error = rig.echo("x").await.unwrap_err();
        let message = format!("says: round {round}");
        assert!(error.message.ends_with(&message), "{}", error.message);
        let plugin = json!({ "plugin": "guard" });
        rig.call("plugins.remove", plugin).await.unwrap();
        rig.echo("x").await.unwrap();
    }
}

/// The watcher answers nobody: a plugin is active once it is listed as such.
#[tokio::test]
async fn the_first_call_after_the_watcher_has_activated_a_plugin_meets_its_rule() {
    let config = HubConfig {
        watch: Some(Duration::from_millis(10)),
        ..HubConfig::default()
    };
    let rig = Arc::new(Rig::set_up(config, &[]).await);
    for round in 0..200 {
        guard(&rig.config_dir().join("plugins/guard"), round);
        let (listing, version) = (Arc::clone(&rig), format!("1.0.{round}"));
        until("the plugin is active", move || {
            let (rig, version) = (Arc::clone(&listing), version.clone());
            async move {
                let listed = rig.call("plugins.list", json!({})).await.unwrap();
                let mut plugins = listed["plugins"].as_array().unwrap().iter();
                plugins.any(|plugin| {
                    plugin["name"] == "guard"
                        && plugin["version"] == *version
                        && plugin["state"] == "active"
                })
            }
        })
        .await;
        let error = rig.echo("x").await.unwrap_err();
        let message = format!("says: round {round}");
        assert!(error.message.ends_with(&message), "{}", error.message);
    }
}

#[tokio::test]
async fn the_first_call_after_trust_meets_the_projects_rule() {
    let rig = Rig::with(&[]).await;
    for round in 0..300 {
        let text = deny("gate", "").replace("\"no\"", &format!("\"round {round}\""));
        rig.put_in_project("gate.toml", &text);
        rig.trust("nothing").await;
        let error = rig.echo("x").await.unwrap_err();
        assert!(
            error.message.ends_with(&format!("says: round {round}")),
            "{}",
            error.message
        );
        rig.call("hub.trust_revoke", json!({})).await.unwrap();
        rig.echo("x").await.unwrap();
    }
}
