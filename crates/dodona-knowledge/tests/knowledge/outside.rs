//! What editors and other programs do to notes.

use serde_json::{Value, json};

use crate::TestProject;
use crate::writing::history;

fn methods(past: &[Value]) -> Vec<&str> {
    past.iter()
        .map(|past| past["method"].as_str().unwrap())
        .collect()
}

/// As editors save: another file, renamed over the old one.
fn save(project: &TestProject, path: &str, text: &str) {
    project.write(".swp", text);
    std::fs::rename(project.root().join(".swp"), project.root().join(path)).unwrap();
}

#[tokio::test]
async fn an_editor_that_saves_by_rename_is_noticed_and_what_was_is_kept() {
    let project = TestProject::with(&[("a.md", "one\n")]).await;
    project.index().await;
    save(&project, "a.md", "two, from the editor\n");
    project.index().await;
    let past = history(&project, "a.md").await;
    assert_eq!(methods(&past), ["outside", "found"]);
    assert_eq!(past[0]["author"], Value::Null);
    let diff = project
        .call("vault.diff", json!({ "path": "a.md" }))
        .await
        .unwrap();
    assert!(
        diff["diff"]
            .as_str()
            .unwrap()
            .contains("-one\n+two, from the editor\n"),
        "{diff}"
    );
    // Also when nobody looked before it is written over.
    save(&project, "a.md", "three, unseen\n");
    project
        .call("vault.write", json!({ "path": "a.md", "body": "ours\n" }))
        .await
        .unwrap();
    let past = history(&project, "a.md").await;
    assert_eq!(methods(&past), ["write", "outside", "outside", "found"]);
    project
        .call("vault.undo", json!({ "path": "a.md" }))
        .await
        .unwrap();
    assert_eq!(project.read("a.md"), "three, unseen\n");
}

#[tokio::test]
async fn a_note_that_was_renamed_or_removed_outside_keeps_its_history() {
    let project = TestProject::with(&[("a.md", "text of a\n"), ("b.md", "text of b\n")]).await;
    project.index().await;
    std::fs::create_dir(project.root().join("sub")).unwrap();
    std::fs::rename(project.root().join("a.md"), project.root().join("sub/c.md")).unwrap();
    project.remove("b.md");
    project.index().await;
    let past = history(&project, "sub/c.md").await;
    assert_eq!(methods(&past), ["outside", "found"]);
    assert_eq!(
        (&past[0]["moved_from"], &past[1]["path"]),
        (&json!("a.md"), &json!("a.md"))
    );
    let trash = project.call("vault.trash", json!({})).await.unwrap();
    let gone: Vec<&Value> = trash["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| &note["path"])
        .collect();
    assert_eq!(gone, ["b.md"]);
    let version = &trash["notes"][0]["version"];
    project
        .call("vault.undo", json!({ "path": "b.md", "version": version }))
        .await
        .unwrap();
    assert_eq!(project.read("b.md"), "text of b\n");
}

#[tokio::test]
async fn histories_last_and_each_project_has_its_own() {
    let project = TestProject::with(&[("a.md", "one\n")]).await;
    project
        .call("vault.write", json!({ "path": "a.md", "body": "two\n" }))
        .await
        .unwrap();
    let project = project.restart().await;
    save(&project, "a.md", "three, while nobody ran\n");
    let project = project.restart().await;
    assert_eq!(
        methods(&history(&project, "a.md").await),
        ["outside", "write", "found"]
    );
    let nothing = history(&project, "b.md").await;
    assert!(nothing.is_empty());
}
