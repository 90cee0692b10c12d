//! Threads: what was thought and decided, kept and found.

use dodona_proto::{ErrorCode, Surface};
use serde_json::{Value, json};

use crate::{Setup, TestProject, agent};

async fn push(project: &TestProject, thread: &str, kind: &str, content: &str) -> Value {
    let params = json!({ "thread_id": thread, "content": content, "entry_type": kind });
    project.call("thread.push", params).await.unwrap()
}

#[tokio::test]
async fn entries_are_written_read_and_listed_in_their_order() {
    let project = TestProject::with(&[]).await;
    for n in 1..=12 {
        let pushed = push(&project, "auth-rework", "thought", &format!("number {n}")).await;
        assert_eq!(pushed["entry"], n);
    }
    push(&project, "other", "insight", "\n\nsomething else\nand more").await;
    let read = async |params: Value| {
        let read = project.call("thread.read", params).await.unwrap();
        let entries = read["entries"].as_array().unwrap().clone();
        entries
            .iter()
            .map(|entry| entry["entry"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read(json!({ "thread_id": "auth-rework" })).await,
        (3..=12).collect::<Vec<_>>()
    );
    let before = json!({ "thread_id": "auth-rework", "before": 3, "limit": 50 });
    assert_eq!(read(before).await, [1, 2]);
    let listed = project.call("thread.list", json!({})).await.unwrap();
    let told: Vec<_> = listed["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| (&thread["thread_id"], &thread["entries"], &thread["last"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("other"), &json!(1), &json!("something else")),
            (&json!("auth-rework"), &json!(12), &json!("number 12"))
        ]
    );
}

#[tokio::test]
async fn entries_are_found_and_cited_with_everything_else() {
    let project = TestProject::with(&[(
        "notes.md",
        "# Tokens\n\nRefresh tokens are described here.\n",
    )])
    .await;
    let why = "We drop refresh tokens because revocation needs a shared store.";
    push(&project, "auth-rework", "decision", why).await;
    let found = project
        .call("thread.seek", json!({ "query": "why no refresh tokens?" }))
        .await
        .unwrap();
    let passage = &found["passages"][0];
    assert_eq!(
        (
            &passage["text"],
            found["passages"].as_array().unwrap().len()
        ),
        (&json!(why), 1)
    );
    let source = &passage["source"];
    assert_eq!(
        (&source["kind"], &source["path"]),
        (&json!("thread"), &json!("thread:auth-rework#1"))
    );
    let title = source["title"].as_str().unwrap();
    assert!(
        title.starts_with("auth-rework, decision of ") && title.ends_with(" by user"),
        "{title}"
    );
    let resolved = project
        .call("search.resolve", json!({ "source": source }))
        .await
        .unwrap();
    assert_eq!(resolved, json!({ "text": why, "stale": false }));
    let mut other = source.clone();
    other["path"] = json!("thread:auth-rework#9");
    let resolved = project
        .call("search.resolve", json!({ "source": other }))
        .await
        .unwrap();
    assert_eq!(resolved["stale"], true);
    // One search over all of it, also after a restart and when the index is made anew.
    let both = async |project: &TestProject| {
        let mut places = project.find("refresh tokens").await;
        places.sort();
        places
    };
    let expected = ["notes.md:1-3", "thread:auth-rework#1:1-1"];
    assert_eq!(both(&project).await, expected);
    let project = project.restart().await;
    push(&project, "auth-rework", "insight", "Refresh tokens again.").await;
    assert_eq!(both(&project).await.len(), 3);
    let project = project.restart().await;
    project.forget_index();
    let project = project.restart().await;
    assert_eq!(both(&project).await.len(), 3);
}

#[tokio::test]
async fn the_author_is_whoever_calls() {
    let setup = Setup {
        plugins: agent::plugins(),
        ..Setup::default()
    };
    let project = TestProject::with_setup(&[], setup).await;
    let entry = json!({ "thread_id": "t", "content": "x" });
    project
        .call_from(Surface::Cli, "thread.push", entry.clone())
        .await
        .unwrap();
    project
        .call_from(Surface::Mcp, "thread.push", entry.clone())
        .await
        .unwrap();
    project
        .tool("q1", None, "thread.push", entry.clone())
        .await
        .unwrap();
    project
        .tool("q1", Some("librarian"), "thread.push", entry.clone())
        .await
        .unwrap();
    project
        .tool("q1", Some("reviewer"), "thread.push", entry)
        .await
        .unwrap();
    let read = project
        .call("thread.read", json!({ "thread_id": "t" }))
        .await
        .unwrap();
    let authors: Vec<&Value> = read["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["author"])
        .collect();
    assert_eq!(authors, ["user", "claude", "oracle", "librarian", "oracle"]);
    let claimed = json!({ "thread_id": "t", "content": "x", "author": "user" });
    let refused = project
        .call_from(Surface::Mcp, "thread.push", claimed)
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidParams);
}

#[tokio::test]
async fn an_archived_thread_is_read_and_found_and_takes_nothing_more() {
    let project = TestProject::with(&[]).await;
    push(&project, "old", "research", "pelicans were counted").await;
    project
        .call("thread.archive", json!({ "thread_id": "old" }))
        .await
        .unwrap();
    let refused = project
        .call("thread.push", json!({ "thread_id": "old", "content": "x" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "thread.archived");
    for (status, count) in [("active", 0), ("archived", 1), ("all", 1)] {
        let listed = project
            .call("thread.list", json!({ "status": status }))
            .await
            .unwrap();
        assert_eq!(
            listed["threads"].as_array().unwrap().len(),
            count,
            "{status}"
        );
    }
    let found = project
        .call("thread.seek", json!({ "query": "pelicans" }))
        .await
        .unwrap();
    assert_eq!(found["passages"].as_array().unwrap().len(), 1);
    project
        .call(
            "thread.archive",
            json!({ "thread_id": "old", "archived": false }),
        )
        .await
        .unwrap();
    push(&project, "old", "insight", "and counted again").await;
}

#[tokio::test]
async fn what_is_no_thread_or_no_entry_is_told() {
    let project = TestProject::with(&[]).await;
    for (method, params, code) in [
        (
            "thread.push",
            json!({ "thread_id": "a/b", "content": "x" }),
            "rpc.invalid_params",
        ),
        (
            "thread.push",
            json!({ "thread_id": "#1", "content": "x" }),
            "rpc.invalid_params",
        ),
        (
            "thread.push",
            json!({ "thread_id": "", "content": "x" }),
            "rpc.invalid_params",
        ),
        (
            "thread.push",
            json!({ "thread_id": "a", "content": " \n" }),
            "limit.size",
        ),
        (
            "thread.push",
            json!({ "thread_id": "a", "content": "x".repeat(65 << 10) }),
            "limit.size",
        ),
        (
            "thread.push",
            json!({ "thread_id": "a", "content": "x", "entry_type": "rant" }),
            "rpc.invalid_params",
        ),
        (
            "thread.read",
            json!({ "thread_id": "nothing" }),
            "hub.not_found",
        ),
        (
            "thread.read",
            json!({ "thread_id": "nothing", "limit": 51 }),
            "rpc.invalid_params",
        ),
        (
            "thread.archive",
            json!({ "thread_id": "nothing" }),
            "hub.not_found",
        ),
    ] {
        let refused = project.call(method, params.clone()).await.unwrap_err();
        assert_eq!(refused.code.as_str(), code, "{method} {params}");
    }
    let listed = project.call("thread.list", json!({})).await.unwrap();
    assert_eq!(listed["threads"], json!([]));
}
