//! Taking back what agents did, and who did it.

use dodona_proto::{ErrorCode, Surface};
use serde_json::{Value, json};

use crate::writing::history;
use crate::{Setup, TestProject, agent};

const UNATTENDED: &[&str] = &[
    "vault.write",
    "vault.move",
    "vault.delete",
    "vault.create_index",
    "vault.undo",
];

async fn with_agent(files: &[(&str, &str)], unattended: &'static [&'static str]) -> TestProject {
    let setup = Setup {
        unattended,
        plugins: agent::plugins(),
        ..Setup::default()
    };
    TestProject::with_setup(files, setup).await
}

#[tokio::test]
async fn the_writes_of_a_query_are_undone_as_one_step() {
    let files = [("a.md", "a\n"), ("b.md", "[[a]]\n"), ("c.md", "c\n")];
    let project = with_agent(&files, UNATTENDED).await;
    let tool = async |query: &str, method: &str, params: Value| {
        project.tool(query, None, method, params).await.unwrap()
    };
    tool(
        "q1",
        "vault.write",
        json!({ "path": "a.md", "body": "changed\n" }),
    )
    .await;
    tool(
        "q1",
        "vault.move",
        json!({ "old_path": "a.md", "new_path": "sub/z.md" }),
    )
    .await;
    tool(
        "q2",
        "vault.write",
        json!({ "path": "other.md", "body": "of another query\n" }),
    )
    .await;
    tool(
        "q1",
        "vault.write",
        json!({ "path": "new.md", "body": "new\n" }),
    )
    .await;
    tool("q1", "vault.delete", json!({ "path": "c.md" })).await;
    tool("q1", "vault.create_index", json!({ "folder": "" })).await;
    assert_eq!(project.read("b.md"), "[[z]]\n");
    let changes = project
        .call("vault.changes", json!({ "query": "q1" }))
        .await
        .unwrap();
    assert_eq!(changes["changes"].as_array().unwrap().len(), 5);
    let undone = project
        .call("vault.undo", json!({ "query": "q1" }))
        .await
        .unwrap();
    assert!(undone["change"].is_i64());
    for (path, text) in files {
        assert_eq!(project.read(path), text);
    }
    assert_eq!(project.read("other.md"), "of another query\n");
    for gone in ["new.md", "sub/z.md", "index.md"] {
        assert!(!project.root().join(gone).exists(), "{gone} is there");
    }
    let again = project
        .call("vault.undo", json!({ "query": "q1" }))
        .await
        .unwrap_err();
    assert_eq!(again.code.as_str(), "vault.nothing_to_undo");
}

#[tokio::test]
async fn what_somebody_did_since_is_never_undone_with_it() {
    let project = with_agent(&[("a.md", "a\n"), ("b.md", "b\n")], UNATTENDED).await;
    for path in ["a.md", "b.md"] {
        let params = json!({ "path": path, "body": "by the agent\n" });
        project
            .tool("q1", None, "vault.write", params)
            .await
            .unwrap();
    }
    project.write("a.md", "by a person\n");
    let refused = project
        .call("vault.undo", json!({ "query": "q1" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "vault.conflict");
    assert!(refused.message.contains("a.md"), "{}", refused.message);
    // All of it or nothing.
    assert_eq!(project.read("b.md"), "by the agent\n");
    assert_eq!(project.read("a.md"), "by a person\n");
    for params in [
        json!({}),
        json!({ "path": "a.md", "query": "q1" }),
        json!({ "query": "q1", "version": "0123456789" }),
    ] {
        let refused = project.call("vault.undo", params).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParams);
    }
}

#[tokio::test]
async fn every_write_says_who_and_why() {
    let project = with_agent(&[], UNATTENDED).await;
    let write = |n: u8| json!({ "path": "a.md", "body": format!("{n}\n") });
    project.call("vault.write", write(1)).await.unwrap();
    project
        .call_from(Surface::Mcp, "vault.write", write(2))
        .await
        .unwrap();
    project
        .tool("q1", None, "vault.write", write(3))
        .await
        .unwrap();
    project
        .tool("q1", Some("librarian"), "vault.write", write(4))
        .await
        .unwrap();
    project
        .tool("q2", Some("reviewer"), "vault.write", write(5))
        .await
        .unwrap();
    let past = history(&project, "a.md").await;
    let told: Vec<_> = past
        .iter()
        .map(|past| {
            (
                past["author"].as_str().unwrap(),
                past["query"].as_str(),
                past["call_path"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("oracle", Some("q2"), "agent.reviewer.vault"),
            ("librarian", Some("q1"), "agent.librarian.vault"),
            ("oracle", Some("q1"), "agent.vault"),
            ("claude", None, "vault"),
            ("user", None, "vault"),
        ]
    );
    assert!(
        past.iter()
            .all(|past| past["user"] == "alice" && past["call"].is_string())
    );
    // A query is also named by the call that asked it.
    let call = past[1]["call"].as_str().unwrap().split('.').next().unwrap();
    let changes = project
        .call("vault.changes", json!({ "query": call }))
        .await
        .unwrap();
    assert_eq!(changes["changes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_asks_before_it_changes_notes_and_a_person_does_not() {
    let project = with_agent(&[("a.md", "a\n")], &["vault.delete"]).await;
    for (method, params) in [
        ("vault.write", json!({ "path": "a.md", "body": "b" })),
        (
            "vault.move",
            json!({ "old_path": "a.md", "new_path": "b.md" }),
        ),
        ("vault.create_index", json!({ "folder": "" })),
        ("vault.undo", json!({ "path": "a.md" })),
    ] {
        let refused = project.tool("q1", None, method, params).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ApprovalRequired, "{method}");
    }
    // Nobody is asked about a call that can never run.
    for (method, params) in [
        (
            "vault.write",
            json!({ "path": "../../.bashrc", "body": "b" }),
        ),
        ("vault.delete", json!({ "path": "/etc/passwd.md" })),
        (
            "vault.move",
            json!({ "old_path": "a.md", "new_path": "../b.md" }),
        ),
    ] {
        let refused = project.tool("q1", None, method, params).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParams, "{method}");
    }
    assert_eq!(project.read("a.md"), "a\n");
    project
        .tool("q1", None, "vault.read", json!({ "path": "a.md" }))
        .await
        .unwrap();
    project
        .call("vault.write", json!({ "path": "a.md", "body": "b" }))
        .await
        .unwrap();
    // What is trusted does not ask.
    project
        .tool("q1", None, "vault.delete", json!({ "path": "a.md" }))
        .await
        .unwrap();
}
