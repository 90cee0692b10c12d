//! Reading, drafting and saving rules' files, and how busy rules were.

use dodona_plugin::CallError;
use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, notice, rule};

fn refuse(message: &str) -> String {
    let action = format!("type = \"deny\"\nmessage = \"{message}\"");
    rule("no", "on_tool_call", "True", &action)
}

async fn source(rig: &Rig, rule: &str) -> Value {
    let params = json!({ "rule": rule });
    rig.call("rules.source", params).await.unwrap()
}

async fn write(
    rig: &Rig,
    scope: &str,
    file: &str,
    text: &str,
    seen: Option<&str>,
) -> Result<Value, CallError> {
    let params = json!({ "scope": scope, "file": file, "text": text, "if_version": seen });
    rig.call("rules.write", params).await
}

#[tokio::test]
async fn a_rule_that_is_saved_counts_at_once_and_can_be_read_back() {
    let rig = Rig::with(&[]).await;
    assert!(rig.echo("x").await.is_ok());
    for (scope, file) in [("project", "theirs.toml"), ("user", "mine.toml")] {
        let text = refuse(scope);
        let saved = write(&rig, scope, file, &text, None).await.unwrap();
        assert_eq!(
            (&saved["rule"], &saved["problems"]),
            (&json!("rules/no"), &json!([]))
        );
        // What the user says wins over the project.
        let said = match scope {
            "project" => "rule `no` of project `orchard` says: project",
            own => own,
        };
        assert_eq!(rig.echo("x").await.unwrap_err().message, said);
        let read = source(&rig, "no").await;
        assert_eq!(
            (&read["text"], &read["scope"]),
            (&json!(text), &json!(scope))
        );
        assert_eq!(
            (&read["file"], &read["locked"]),
            (&json!(file), &Value::Null)
        );
        assert_eq!(
            (&read["version"], &read["path"]),
            (&saved["version"], &saved["path"])
        );
    }
    let files = std::fs::read_dir(rig.root().join(".dodona/rules")).unwrap();
    assert_eq!(files.count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn nobodys_change_is_lost() {
    let rig = Rig::with(&[("a.toml", &refuse("first"))]).await;
    let seen = source(&rig, "no").await["version"]
        .as_str()
        .unwrap()
        .to_owned();
    let code = |result: Result<Value, CallError>| result.unwrap_err().code.as_str().to_owned();
    let again = write(&rig, "user", "a.toml", &refuse("mine"), None).await;
    assert_eq!(code(again), "rules.exists");
    rig.put("a.toml", &refuse("theirs"));
    let late = write(&rig, "user", "a.toml", &refuse("mine"), Some(&seen)).await;
    assert_eq!(code(late), "rules.changed");
    rig.remove("a.toml");
    let gone = write(&rig, "user", "a.toml", &refuse("mine"), Some(&seen)).await;
    assert_eq!(code(gone), "rules.changed");
}

#[tokio::test]
async fn a_text_that_cannot_run_is_refused_with_all_that_is_wrong() {
    let rig = Rig::with(&[("a.toml", &refuse("first"))]).await;
    let seen = source(&rig, "no").await["version"]
        .as_str()
        .unwrap()
        .to_owned();
    let broken = refuse("second")
        .replace("True", "contxt.turn > 1")
        .replace("\"deny\"", "\"dney\"");
    let refused = write(&rig, "user", "a.toml", &broken, Some(&seen))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "rules.broken");
    let problems = refused.data_value().unwrap()["problems"]
        .as_array()
        .unwrap();
    assert!(!problems.is_empty());
    assert!(
        problems
            .iter()
            .all(|problem| problem["place"]["line"].as_u64() > Some(0)),
        "{problems:#?}"
    );
    assert_eq!(rig.echo("x").await.unwrap_err().message, "first");
}

#[tokio::test]
async fn a_test_that_does_not_pass_is_told_and_the_file_is_saved() {
    let rig = Rig::with(&[]).await;
    let text = format!(
        "{}[[tests]]\nname = \"stays\"\nexpect = {{ fired = false }}\n",
        refuse("no")
    );
    let saved = write(&rig, "user", "a.toml", &text, None).await.unwrap();
    let problem = &saved["problems"][0];
    assert_eq!(problem["severity"], "warning");
    assert!(
        problem["message"].as_str().unwrap().contains("stays"),
        "{problem}"
    );
}

#[tokio::test]
async fn names_lead_nowhere_but_to_rules() {
    let rig = Rig::with(&[]).await;
    std::fs::write(rig.root().join("secret.toml"), "key = 1").unwrap();
    for file in ["../out.toml", "a/b.toml", ".hidden.toml", "no-toml.txt"] {
        let refused = write(&rig, "project", file, &refuse("no"), None).await;
        assert!(
            refused
                .unwrap_err()
                .message
                .contains("not a valid rule file name"),
            "{file}"
        );
    }
    let secret = rig.root().join("secret.toml");
    let beside = rig.root().join(".dodona/rules/../../secret.toml");
    for path in [
        secret,
        beside,
        rig.config_dir().join("config.toml"),
        "/etc/passwd".into(),
    ] {
        let refused = rig.call("rules.source", json!({ "path": path })).await;
        assert_eq!(
            refused.unwrap_err().code.as_str(),
            "hub.not_found",
            "{}",
            path.display()
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_of_a_project_are_neither_read_nor_written_through() {
    let rig = Rig::with(&[]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let directory = rig.root().join(".dodona/rules");
    let outside = elsewhere.path().join("outside.toml");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(&outside, "secret = 1").unwrap();
    let link = directory.join("a.toml");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let read = rig.call("rules.source", json!({ "path": link })).await;
    assert_eq!(read.unwrap_err().code.as_str(), "hub.not_found");
    let written = write(&rig, "project", "a.toml", &refuse("no"), None).await;
    assert_eq!(written.unwrap_err().code.as_str(), "rules.exists");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret = 1");
}

#[tokio::test]
async fn a_broken_file_can_be_read_by_its_path_with_its_problems() {
    let rig = Rig::with(&[("a.toml", "[rule]\nid = 3\n")]).await;
    let path = rig.config_dir().join("rules/a.toml");
    let read = rig
        .call("rules.source", json!({ "path": path }))
        .await
        .unwrap();
    assert_eq!(
        (&read["rule"], &read["text"]),
        (&Value::Null, &json!("[rule]\nid = 3\n"))
    );
    let lines = read["problems"].as_array().unwrap().iter();
    assert!(
        lines.clone().any(|problem| problem["place"]["line"] == 2),
        "{read:#}"
    );
}

#[tokio::test]
async fn a_bundled_rule_can_be_read_with_its_script_and_says_why_it_is_locked() {
    let rig = Rig::with(&[]).await;
    let read = source(&rig, "repeated-failure-warning").await;
    assert_eq!(
        (&read["scope"], &read["file"]),
        (&json!("bundled"), &json!("repeated-failure-warning.toml"))
    );
    assert!(read["locked"].as_str().unwrap().contains("bundled"));
    let scripts = read["scripts"].as_object().unwrap();
    assert!(
        scripts["scripts/repeated-failure.lua"]
            .as_str()
            .unwrap()
            .len()
            > 10
    );
}

#[tokio::test]
async fn a_template_is_a_rule_that_can_be_saved_as_it_is() {
    let rig = Rig::with(&[]).await;
    let params = json!({ "id": "my-rule", "trigger": "on_tool_call" });
    let draft = rig.call("rules.template", params).await.unwrap();
    let (file, text) = (
        draft["file"].as_str().unwrap(),
        draft["text"].as_str().unwrap(),
    );
    assert_eq!(file, "my-rule.toml");
    let saved = write(&rig, "project", file, text, None).await.unwrap();
    assert_eq!(
        (&saved["rule"], &saved["problems"]),
        (&json!("rules/my-rule"), &json!([]))
    );
}

#[tokio::test]
async fn what_rules_did_is_counted_by_day_for_each_user() {
    let rig = Rig::with(&[("a.toml", &notice("busy", "on_turn_start", "True", "hello"))]).await;
    rig.ask([Reply::text("done")]).await;
    rig.ask([Reply::text("done")]).await;
    let activity = rig
        .call("rules.activity", json!({ "days": 3 }))
        .await
        .unwrap();
    let days = activity["days"].as_array().unwrap();
    assert_eq!(days.len(), 3);
    let counts = activity["rules"]["rules/busy"].as_array().unwrap();
    // Midnight may pass between the two.
    let sum: u64 = counts.iter().filter_map(Value::as_u64).sum();
    assert_eq!((counts.len(), sum), (3, 2));
    let bob = rig.request("bob", "rules.activity", json!({}));
    let bob = dodona_hub::Request {
        project: None,
        ..bob
    };
    assert_eq!(rig.hub().call(bob).await.unwrap()["rules"], json!({}));
}
