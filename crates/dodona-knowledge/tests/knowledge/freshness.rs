use dodona_hub::CallStream;
use dodona_proto::ItemBody;
use serde_json::{Value, json};

use crate::TestProject;

/// The next summary of a watched index.
async fn next(updates: &mut CallStream) -> Value {
    loop {
        let items = updates.next().await.unwrap().expect("a watch goes on");
        for item in items {
            match item.to_item().unwrap().body {
                ItemBody::Data { data, .. } => return data,
                ItemBody::Error { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
}

/// Summaries until one says what is waited for.
async fn until(updates: &mut CallStream, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let summary = next(updates).await;
        if wanted(&summary) {
            return summary;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_project_is_kept_in_step() {
    let project = TestProject::with(&[("a.md", "# Apples\n"), (".gitignore", "out/\n")]).await;
    let mut updates = project.open("search.index", json!({ "watch": true })).await;
    assert_eq!(next(&mut updates).await["files"], 1);
    project.write("deep/new/folder/b.md", "# Pears\n");
    until(&mut updates, |summary| summary["files"] == 2).await;
    assert_eq!(project.find("pears").await, ["deep/new/folder/b.md:1-1"]);
    // In a folder that was not there when the watch began.
    project.write("deep/new/folder/c.md", "# Plums\n");
    until(&mut updates, |summary| summary["files"] == 3).await;
    // As editors save: another file, renamed over the old one.
    project.write("deep/.a.md.swp", "# Cherries\n");
    std::fs::rename(
        project.root().join("deep/.a.md.swp"),
        project.root().join("a.md"),
    )
    .unwrap();
    until(&mut updates, |summary| summary["changed"] == 1).await;
    assert_eq!(project.find("cherries").await, ["a.md:1-1"]);
    project.remove("a.md");
    until(&mut updates, |summary| summary["removed"] == 1).await;
    // What is ignored from now on disappears.
    project.write(".gitignore", "deep/\n");
    let last = until(&mut updates, |summary| summary["removed"] == 2).await;
    assert_eq!(last["files"], 0);
}

#[tokio::test]
async fn only_markdown_in_the_vault_is_a_note() {
    let project = TestProject::with(&[
        ("README.md", "# Readme\n\nSee [[one]]. #tag\n"),
        ("notes/one.md", "# One\n\nBack to [[two]]. #kept\n"),
        ("notes/two.md", "# Two\n"),
    ])
    .await;
    let notes = async || {
        let listed = project.call("vault.list", json!({})).await.unwrap();
        listed["notes"].as_array().unwrap().len()
    };
    assert_eq!(notes().await, 3);
    project.write(".vault-root", "notes");
    let synced = project.index().await;
    assert_eq!(
        (&synced["notes"], &synced["changed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(notes().await, 2);
    let tags = project.call("vault.tags", json!({})).await.unwrap();
    assert_eq!(
        tags["tags"],
        json!([{ "tag": "kept", "notes": ["notes/one.md"] }])
    );
    let links = project
        .call("vault.backlinks", json!({ "path": "notes/one.md" }))
        .await
        .unwrap();
    assert_eq!(links["backlinks"], json!([]));
    // It is still found, as text.
    let found = project
        .call("code.search", json!({ "query": "readme" }))
        .await;
    assert_eq!(found.unwrap()["passages"][0]["source"]["kind"], "text");
}
