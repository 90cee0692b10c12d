//! Scripts that are saved with their rules, other names, and rules that are deleted.

use dodona_plugin::CallError;
use serde_json::{Value, json};

use crate::rig::{Rig, rule};

/// A rule that refuses everything, with a comment that stays.
fn refuse(id: &str, condition: &str) -> String {
    let text = rule(
        id,
        "on_tool_call",
        "True",
        "type = \"deny\"\nmessage = \"no\"",
    );
    format!("# why\n{text}").replace("expression = '''True'''", condition)
}

fn scripted(path: &str) -> String {
    refuse("scripted", &format!("script = \"{path}\""))
}

async fn version(rig: &Rig, rule: &str) -> String {
    let params = json!({ "rule": rule });
    let source = rig.call("rules.source", params).await.unwrap();
    source["version"].as_str().unwrap().to_owned()
}

async fn write(
    rig: &Rig,
    text: &str,
    scripts: Value,
    seen: Option<&str>,
) -> Result<Value, CallError> {
    let params = json!({
        "scope": "project", "file": "scripted.toml", "text": text, "scripts": scripts, "if_version": seen,
    });
    rig.call("rules.write", params).await
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    result.unwrap_err().code.as_str().to_owned()
}

#[tokio::test]
async fn a_script_is_saved_with_its_rule_and_counts_at_once() {
    let rig = Rig::with(&[]).await;
    let text = scripted("scripts/always.lua");
    let scripts = json!({ "scripts/always.lua": "return true" });
    write(&rig, &text, scripts, None).await.unwrap();
    let error = rig.echo("x").await.unwrap_err();
    assert_eq!(
        error.message,
        "rule `scripted` of project `orchard` says: no"
    );
    let seen = version(&rig, "scripted").await;
    let never = json!({ "scripts/always.lua": "return false" });
    let saved = write(&rig, &text, never, Some(&seen)).await.unwrap();
    assert!(rig.echo("x").await.is_ok());
    assert_eq!(saved["version"], version(&rig, "scripted").await);
    let file = rig.root().join(".dodona/rules/scripts/always.lua");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "return false");
}

#[tokio::test]
async fn a_script_that_cannot_run_is_refused_and_nothing_is_saved() {
    let rig = Rig::with(&[]).await;
    let text = scripted("a.lua");
    let broken = write(&rig, &text, json!({ "a.lua": "return (" }), None).await;
    assert_eq!(code(broken), "rules.broken");
    assert!(!rig.root().join(".dodona/rules/a.lua").exists());
    assert!(!rig.root().join(".dodona/rules/scripted.toml").exists());
}

#[tokio::test]
async fn nobodys_script_is_lost() {
    let rig = Rig::with(&[]).await;
    let text = scripted("a.lua");
    let first = json!({ "a.lua": "return false" });
    write(&rig, &text, first.clone(), None).await.unwrap();
    let seen = version(&rig, "scripted").await;
    // Somebody changes the script alone.
    let file = rig.root().join(".dodona/rules/a.lua");
    std::fs::write(&file, "return false -- theirs").unwrap();
    let late = write(&rig, &text, json!({ "a.lua": "return nil" }), Some(&seen)).await;
    assert_eq!(code(late), "rules.changed");
    // A script that is there is not written over by a rule that did not name it so far.
    let other = rig.root().join(".dodona/rules/b.lua");
    std::fs::write(&other, "return false -- others'").unwrap();
    let seen = version(&rig, "scripted").await;
    let over = json!({ "b.lua": "return nil" });
    let taken = write(&rig, &scripted("b.lua"), over, Some(&seen)).await;
    assert_eq!(code(taken), "rules.exists");
    assert_eq!(
        std::fs::read_to_string(&other).unwrap(),
        "return false -- others'"
    );
}

#[tokio::test]
async fn scripts_lead_nowhere_but_below_the_rules() {
    let rig = Rig::with(&[]).await;
    let out = json!({ "../out.lua": "return false" });
    let refused = write(&rig, &scripted("../out.lua"), out, None).await;
    assert!(refused.is_err());
    assert!(!rig.root().join(".dodona/out.lua").exists());
    let unnamed = json!({ "b.lua": "return false" });
    let refused = write(
        &rig,
        &refuse("scripted", "expression = \"True\""),
        unnamed,
        None,
    )
    .await;
    assert!(
        refused
            .unwrap_err()
            .message
            .contains("does not refer to script")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn no_link_leads_a_script_out_of_a_project() {
    let rig = Rig::with(&[]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let directory = rig.root().join(".dodona/rules");
    std::fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), directory.join("scripts")).unwrap();
    let out = json!({ "scripts/a.lua": "return false" });
    let refused = write(&rig, &scripted("scripts/a.lua"), out, None).await;
    assert!(refused.unwrap_err().message.contains("leads outside"));
    assert!(!elsewhere.path().join("a.lua").exists());
}

async fn rename(rig: &Rig, file: &str, id: &str, seen: &str) -> Result<Value, CallError> {
    let params = json!({ "scope": "user", "file": file, "id": id, "if_version": seen });
    rig.call("rules.rename", params).await
}

#[tokio::test]
async fn a_rule_is_renamed_with_its_file_and_stays_switched_off() {
    let text = refuse("old", "expression = \"True\"");
    let rig = Rig::with(&[("first.toml", &text)]).await;
    rig.call("rules.disable", json!({ "rule": "old" }))
        .await
        .unwrap();
    let seen = version(&rig, "old").await;
    let saved = rename(&rig, "first.toml", "new", &seen).await.unwrap();
    assert_eq!(
        (&saved["rule"], &saved["problems"]),
        (&json!("rules/new"), &json!([]))
    );
    let rules = rig.config_dir().join("rules");
    assert!(!rules.join("first.toml").exists());
    let now = std::fs::read_to_string(rules.join("new.toml")).unwrap();
    assert_eq!(now, text.replace("\"old\"", "\"new\""));
    assert!(rig.echo("x").await.is_ok(), "it stays switched off");
    let shown = rig.call("rules.show", json!({ "rule": "new" })).await;
    assert_eq!(shown.unwrap()["switched_off"], true);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_so_is_an_older_version() {
    let texts = ["one", "two"].map(|id| refuse(id, "expression = \"False\""));
    let rig = Rig::with(&[("one.toml", &texts[0]), ("other.toml", &texts[1])]).await;
    let seen = version(&rig, "one").await;
    for taken in ["two", "one", "repeated-failure-warning"] {
        let refused = rename(&rig, "one.toml", taken, &seen).await;
        assert_eq!(code(refused), "rules.exists", "{taken}");
    }
    let file = rename(&rig, "one.toml", "other", &seen).await;
    assert_eq!(code(file), "rules.exists");
    rig.put("one.toml", &refuse("one", "expression = \"1 > 2\""));
    let late = rename(&rig, "one.toml", "three", &seen).await;
    assert_eq!(code(late), "rules.changed");
}

#[tokio::test]
async fn a_deleted_rule_is_gone_and_the_one_it_replaced_counts_again() {
    let rig = Rig::with(&[]).await;
    let bundled = json!({ "rule": "large-result-hint" });
    let source = rig.call("rules.source", bundled).await.unwrap();
    let file = "large-result-hint.toml";
    let copy = json!({ "scope": "user", "file": file, "text": source["text"] });
    let saved = rig.call("rules.write", copy).await.unwrap();
    let old = json!({ "scope": "user", "file": file, "if_version": "another" });
    assert_eq!(code(rig.call("rules.delete", old).await), "rules.changed");
    let now = json!({ "scope": "user", "file": file, "if_version": saved["version"] });
    let deleted = rig.call("rules.delete", now).await.unwrap();
    assert_eq!(deleted["path"], saved["path"]);
    assert_eq!(deleted["instead"], source["path"]);
    assert!(!rig.config_dir().join("rules").join(file).exists());
}
