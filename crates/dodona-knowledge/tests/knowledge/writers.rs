//! Two writers on one note.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::TestProject;
use crate::writing::history;

#[tokio::test]
async fn a_version_that_is_not_expected_is_a_conflict_that_tells_the_current_one() {
    let project = TestProject::with(&[("a.md", "one\n")]).await;
    let read = project
        .call("vault.read", json!({ "path": "a.md" }))
        .await
        .unwrap();
    project
        .call("vault.write", json!({ "path": "a.md", "body": "theirs\n" }))
        .await
        .unwrap();
    for (method, params) in [
        (
            "vault.write",
            json!({ "path": "a.md", "body": "mine\n", "if_version": read["version"] }),
        ),
        (
            "vault.write",
            json!({ "path": "a.md", "body": "mine\n", "if_version": "none" }),
        ),
        (
            "vault.delete",
            json!({ "path": "a.md", "if_version": read["version"] }),
        ),
        (
            "vault.move",
            json!({ "old_path": "a.md", "new_path": "b.md", "if_version": read["version"] }),
        ),
    ] {
        let error = project.call(method, params).await.unwrap_err();
        assert_eq!(error.code.as_str(), "vault.conflict");
        let error = serde_json::to_value(&error).unwrap();
        let now = project
            .call("vault.read", json!({ "path": "a.md" }))
            .await
            .unwrap();
        assert_eq!(error["data"]["current_version"], now["version"], "{error}");
    }
    assert_eq!(project.read("a.md"), "theirs\n");
    // Without a version the other's stays in the history.
    project
        .call("vault.write", json!({ "path": "a.md", "body": "mine\n" }))
        .await
        .unwrap();
    let past = history(&project, "a.md").await;
    assert_eq!(past.len(), 3);
    let theirs = past[0]["previous"].clone();
    let old = project
        .call("vault.read", json!({ "path": "a.md", "version": theirs }))
        .await
        .unwrap();
    assert_eq!(old["text"], "theirs\n");
}

/// Counts up in a note, and begins anew where somebody else was faster.
async fn count(project: Arc<TestProject>, times: usize) {
    for _ in 0..times {
        loop {
            let read = project
                .call("vault.read", json!({ "path": "count.md" }))
                .await
                .unwrap();
            let number: u64 = read["text"].as_str().unwrap().trim().parse().unwrap();
            let next = json!({ "path": "count.md", "body": format!("{}\n", number + 1), "if_version": read["version"] });
            match project.call("vault.write", next).await {
                Ok(_) => break,
                Err(error) => assert_eq!(error.code.as_str(), "vault.conflict"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_expect_a_version_lose_nothing_of_each_other() {
    let project = Arc::new(TestProject::with(&[("count.md", "0\n")]).await);
    let writers = [0, 1].map(|_| tokio::spawn(count(Arc::clone(&project), 10)));
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(project.read("count.md"), "20\n");
    assert_eq!(history(&project, "count.md").await.len(), 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_expect_nothing_leave_every_version_in_the_history() {
    let project = Arc::new(TestProject::with(&[]).await);
    let writers = ["a", "b"].map(|name| {
        let project = Arc::clone(&project);
        tokio::spawn(async move {
            for n in 0..10 {
                let params = json!({ "path": "shared.md", "body": format!("{name}{n}\n") });
                project.call("vault.write", params).await.unwrap();
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    let past = history(&project, "shared.md").await;
    let mut texts = Vec::new();
    for version in past.iter().map(|past| past["version"].clone()) {
        let read = project
            .call(
                "vault.read",
                json!({ "path": "shared.md", "version": version }),
            )
            .await;
        texts.push(read.unwrap()["text"].as_str().unwrap().trim().to_owned());
    }
    texts.sort();
    let expected: Vec<String> = ["a", "b"]
        .iter()
        .flat_map(|name| (0..10).map(move |n| format!("{name}{n}")))
        .collect();
    assert_eq!(texts, expected);
    // Each took the place of the one before it.
    for pair in past.windows(2) {
        assert_eq!(pair[0]["previous"], pair[1]["version"]);
    }
    assert_eq!(
        past.last().map(|past| &past["previous"]),
        Some(&Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_that_are_moved_at_once_keep_their_links() {
    const NOTES: usize = 12;
    let text = |n: usize| format!("# Note {n}\n\nSee [next](note-{}.md).\n", (n + 1) % NOTES);
    let files: Vec<(String, String)> = (0..NOTES)
        .map(|n| (format!("note-{n}.md"), text(n)))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let project = Arc::new(TestProject::with(&files).await);
    let moves = (0..NOTES).map(|n| {
        let project = Arc::clone(&project);
        tokio::spawn(async move {
            let (old, new) = (
                format!("note-{n}.md"),
                format!("folder-{}/note-{n}.md", n % 3),
            );
            let params = json!({ "old_path": old, "new_path": new });
            project.call("vault.move", params).await.unwrap();
        })
    });
    for moved in moves.collect::<Vec<_>>() {
        moved.await.unwrap();
    }
    let graph = project.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]), "{graph}");
    for n in 0..NOTES {
        let path = format!("folder-{}/note-{n}.md", n % 3);
        let linked = project
            .call("vault.backlinks", json!({ "path": path }))
            .await;
        let linked = linked.unwrap()["backlinks"].as_array().unwrap().len();
        assert_eq!(linked, 1, "{path}");
    }
}
