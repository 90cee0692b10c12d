use dodona_proto::ErrorCode;
use serde_json::{Value, json};

use crate::TestProject;

fn code(error: &dodona_proto::CallError) -> &str {
    error.code.as_str()
}

/// What the history of a note says, newest first.
pub(crate) async fn history(project: &TestProject, path: &str) -> Vec<Value> {
    let told = project
        .call("vault.history", json!({ "path": path, "limit": 500 }))
        .await
        .unwrap();
    told["history"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_note_is_made_and_written_over_and_found_at_once() {
    let project = TestProject::with(&[("a.md", "---\ntitle: A\r\ntags: [x]\n---\n\nold\n")]).await;
    let made = project
        .call(
            "vault.write",
            json!({ "path": "deep/new.md", "body": "about pelicans", "title": "Birds" }),
        )
        .await
        .unwrap();
    assert_eq!(project.read("deep/new.md"), "# Birds\n\nabout pelicans\n");
    assert_eq!(made["notes"][0]["previous"], Value::Null);
    assert_eq!(project.find("pelicans").await, ["deep/new.md:1-3"]);
    let read = project
        .call("vault.read", json!({ "path": "deep/new.md" }))
        .await
        .unwrap();
    assert_eq!(read["version"], made["notes"][0]["version"]);
    // Frontmatter stays, byte for byte.
    project
        .call("vault.write", json!({ "path": "a.md", "body": "new\n" }))
        .await
        .unwrap();
    assert_eq!(
        project.read("a.md"),
        "---\ntitle: A\r\ntags: [x]\n---\n\nnew\n"
    );
    let methods: Vec<Value> = history(&project, "a.md")
        .await
        .iter()
        .map(|past| past["method"].clone())
        .collect();
    assert_eq!(methods, ["write", "found"]);
    // Writing what is there changes nothing.
    let again = project
        .call("vault.write", json!({ "path": "a.md", "body": "new\n" }))
        .await
        .unwrap();
    assert_eq!(again, json!({ "change": null, "notes": [] }));
}

#[tokio::test]
async fn what_was_is_read_compared_and_brought_back() {
    let project = TestProject::with(&[]).await;
    let mut versions = Vec::new();
    for body in ["one\n", "one\ntwo\n", "three\n"] {
        let done = project
            .call("vault.write", json!({ "path": "n.md", "body": body }))
            .await
            .unwrap();
        versions.push(done["notes"][0]["version"].as_str().unwrap().to_owned());
    }
    let old = project
        .call(
            "vault.read",
            json!({ "path": "n.md", "version": &versions[0][..12] }),
        )
        .await
        .unwrap();
    assert_eq!(
        (&old["text"], &old["version"]),
        (&json!("one\n"), &json!(versions[0]))
    );
    let diff = project
        .call(
            "vault.diff",
            json!({ "path": "n.md", "from": versions[0], "to": versions[1] }),
        )
        .await
        .unwrap();
    assert!(
        diff["diff"]
            .as_str()
            .unwrap()
            .contains("@@ -1 +1,2 @@\n one\n+two\n"),
        "{diff}"
    );
    let last = project
        .call("vault.diff", json!({ "path": "n.md" }))
        .await
        .unwrap();
    assert!(
        last["diff"]
            .as_str()
            .unwrap()
            .contains("-one\n-two\n+three\n"),
        "{last}"
    );
    project
        .call(
            "vault.undo",
            json!({ "path": "n.md", "version": versions[0] }),
        )
        .await
        .unwrap();
    assert_eq!(project.read("n.md"), "one\n");
    assert_eq!(history(&project, "n.md").await[0]["method"], "restore");
    let unknown = project
        .call(
            "vault.read",
            json!({ "path": "n.md", "version": "0123456789" }),
        )
        .await;
    assert_eq!(unknown.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_note_moves_with_its_history_and_every_link() {
    let project = TestProject::with(&[
        ("index.md", "See [[login]], [[auth/login#Refresh|that]] and [it](auth/login.md).\r\n`[[login]]`\r\n"),
        ("auth/login.md", "---\nup: \"[[index]]\"\n---\n[[session]] [s](session.md)\n"),
        ("auth/session.md", "[[login]]"),
        ("other.md", "no links\n"),
    ])
    .await;
    let moved = project
        .call(
            "vault.move",
            json!({ "old_path": "auth/login.md", "new_path": "guide/Signing in.md" }),
        )
        .await
        .unwrap();
    assert_eq!(
        project.read("index.md"),
        "See [[Signing in]], [[guide/Signing in#Refresh|that]] and [it](guide/Signing%20in.md).\r\n`[[login]]`\r\n"
    );
    assert_eq!(
        project.read("guide/Signing in.md"),
        "---\nup: \"[[index]]\"\n---\n[[session]] [s](../auth/session.md)\n"
    );
    assert_eq!(project.read("auth/session.md"), "[[Signing in]]");
    assert!(!project.root().join("auth/login.md").exists());
    assert_eq!(moved["notes"].as_array().unwrap().len(), 4);
    let graph = project.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]));
    let past = history(&project, "guide/Signing in.md").await;
    let told: Vec<_> = past
        .iter()
        .map(|past| {
            (
                past["method"].as_str().unwrap(),
                past["path"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("move", "guide/Signing in.md"), ("found", "auth/login.md")]
    );
    // All of it is one step back.
    project
        .call("vault.undo", json!({ "path": "guide/Signing in.md" }))
        .await
        .unwrap();
    assert_eq!(project.read("auth/session.md"), "[[login]]");
    assert!(project.root().join("auth/login.md").exists());
    let past = history(&project, "auth/login.md").await;
    let told: Vec<_> = past
        .iter()
        .map(|past| past["method"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["undo", "move", "found"]);
}

#[tokio::test]
async fn a_move_over_a_note_or_from_nowhere_is_refused() {
    let project = TestProject::with(&[("a.md", "a"), ("b.md", "b")]).await;
    let refused = async |old: &str, new: &str| {
        let moved = project
            .call("vault.move", json!({ "old_path": old, "new_path": new }))
            .await;
        code(&moved.unwrap_err()).to_owned()
    };
    assert_eq!(refused("a.md", "b.md").await, "vault.exists");
    assert_eq!(refused("c.md", "d.md").await, "hub.not_found");
    assert_eq!(refused("a.md", "B.md").await, "rpc.invalid_params");
    // Its own name in other letters is free.
    let params = json!({ "old_path": "a.md", "new_path": "A.md" });
    project.call("vault.move", params).await.unwrap();
    assert_eq!(
        (project.read("A.md"), project.read("b.md")),
        ("a".into(), "b".into())
    );
}

#[tokio::test]
async fn a_deleted_note_is_in_the_trash_and_comes_back() {
    let project = TestProject::with(&[("a.md", "precious\n"), ("b.md", "other\n")]).await;
    project
        .call("vault.delete", json!({ "path": "a.md" }))
        .await
        .unwrap();
    assert!(!project.root().join("a.md").exists());
    project.index().await;
    let trash = project.call("vault.trash", json!({})).await.unwrap();
    assert_eq!(trash["notes"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&trash["notes"][0]["path"], &trash["notes"][0]["method"]),
        (&json!("a.md"), &json!("delete"))
    );
    let gone = project
        .call("vault.delete", json!({ "path": "a.md" }))
        .await
        .unwrap_err();
    assert_eq!(gone.code, ErrorCode::NotFound);
    project
        .call("vault.undo", json!({ "path": "a.md" }))
        .await
        .unwrap();
    assert_eq!(project.read("a.md"), "precious\n");
    let trash = project.call("vault.trash", json!({})).await.unwrap();
    assert_eq!(trash["notes"], json!([]));
}

#[tokio::test]
async fn an_index_lists_a_folder_and_leaves_the_rest_of_its_note_alone() {
    let project = TestProject::with(&[
        (
            "guide/one.md",
            "# One [1]\n\nThe *first* `note`.\nIt goes on.\n",
        ),
        ("guide/more/two.md", "---\ntitle: Two\n---\nSecond.\n"),
        ("elsewhere.md", "x"),
    ])
    .await;
    let params = json!({ "folder": "guide", "title": "The guide", "include_summaries": true });
    project.call("vault.create_index", params).await.unwrap();
    let expected = "# The guide\n\n<!-- index: begin -->\n\n- [One \\[1\\]](one.md): The first note. It goes on.\n\n## more\n\n- [Two](more/two.md): Second.\n\n<!-- index: end -->\n";
    assert_eq!(project.read("guide/index.md"), expected);
    project.write(
        "guide/index.md",
        &format!(
            "---\nmine: yes\n---\nMy words.\n\n{}\nMore.\n",
            expected.split_once("\n\n").unwrap().1
        ),
    );
    project.write("guide/three.md", "# Three\n");
    project.index().await;
    project
        .call("vault.create_index", json!({ "folder": "guide/" }))
        .await
        .unwrap();
    let text = project.read("guide/index.md");
    assert!(
        text.starts_with("---\nmine: yes\n---\nMy words.\n"),
        "{text}"
    );
    assert!(
        text.contains("- [Three](three.md)\n") && text.ends_with("\nMore.\n"),
        "{text}"
    );
    let graph = project.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]));
    let none = project
        .call("vault.create_index", json!({ "folder": "nothing" }))
        .await;
    assert_eq!(none.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn hostile_paths_write_nothing() {
    let project = TestProject::with(&[("a.md", "a")]).await;
    let outside = project.root().parent().unwrap().join("out.md");
    std::fs::write(&outside, "theirs").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, project.root().join("link.md")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(project.root().parent().unwrap(), project.root().join("up"))
        .unwrap();
    let absolute = outside.to_str().unwrap();
    for path in [
        "../out.md",
        "link.md",
        "up/out.md",
        "up/new.md",
        absolute,
        ".git/x.md",
        "a.md/b.md",
        "x.txt",
        "CON.md",
        "A.md",
        "a\0.md",
        "a/../../out.md",
    ] {
        for (method, params) in [
            ("vault.write", json!({ "path": path, "body": "ours" })),
            ("vault.delete", json!({ "path": path })),
            (
                "vault.move",
                json!({ "old_path": "a.md", "new_path": path }),
            ),
            (
                "vault.move",
                json!({ "old_path": path, "new_path": "b.md" }),
            ),
        ] {
            // The one that is allowed: another case of its own name.
            if method == "vault.move" && path == "A.md" {
                continue;
            }
            let done = project.call(method, params).await;
            assert!(done.is_err(), "{method} took {path:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs");
    assert_eq!(project.read("a.md"), "a");
    assert!(!project.root().parent().unwrap().join("new.md").exists());
}

#[tokio::test]
async fn limits_are_told() {
    let project = TestProject::with(&[]).await;
    let body = "x\n".repeat(600_000);
    let refused = project
        .call("vault.write", json!({ "path": "a.md", "body": body }))
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooLarge);
    assert!(
        refused.message.contains("1200000 bytes"),
        "{}",
        refused.message
    );
    assert!(!project.root().join("a.md").exists());
}

#[tokio::test]
async fn only_the_vault_is_written() {
    let project = TestProject::with(&[
        (".vault-root", "notes"),
        ("README.md", "x"),
        ("notes/a.md", "[[b]]"),
    ])
    .await;
    for path in ["README.md", "notes2/x.md"] {
        let refused = project
            .call("vault.write", json!({ "path": path, "body": "y" }))
            .await
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParams);
        assert!(
            refused.message.contains("are in `notes`"),
            "{}",
            refused.message
        );
    }
    project
        .call("vault.write", json!({ "path": "notes/b.md", "body": "y" }))
        .await
        .unwrap();
    project
        .call("vault.create_index", json!({ "folder": "" }))
        .await
        .unwrap();
    assert!(project.read("notes/index.md").contains("(b.md)"));
}
