use std::path::Path;
use std::process::Command;

use dodona_proto::ErrorCode;
use serde_json::{Value, json};

use crate::TestProject;

fn git(root: &Path, arguments: &[&str]) {
    let run = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args([
            "-c",
            "commit.gpgsign=false",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "git {arguments:?}: {said}");
}

async fn repository() -> TestProject {
    let project = TestProject::with(&[("src/a.rs", "fn a() {}\nfn b() {}\n")]).await;
    let root = project.root();
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(
        &root,
        &["commit", "-q", "-m", "Begin\n\nEverything has a beginning."],
    );
    project.write("note.md", "# Note\n");
    git(&root, &["add", "."]);
    let why = "Drop refresh tokens\n\nRevocation needed a shared store, which the edge nodes lack.";
    git(&root, &["commit", "-q", "-m", why]);
    project
}

fn titles(found: &Value) -> Vec<&str> {
    let commits = found["commits"].as_array().unwrap();
    commits
        .iter()
        .map(|commit| commit["source"]["title"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn why_something_was_done_is_found_in_the_history() {
    let project = repository().await;
    let found = project
        .call(
            "code.log",
            json!({ "query": "why were refresh tokens dropped?" }),
        )
        .await
        .unwrap();
    assert_eq!(titles(&found)[0], "Drop refresh tokens");
    assert_eq!(found["commits"][0]["author"], "Ada");
    let resolved = project
        .call(
            "search.resolve",
            json!({ "source": found["commits"][0]["source"] }),
        )
        .await
        .unwrap();
    assert_eq!(resolved["stale"], false);
    assert!(resolved["text"].as_str().unwrap().contains("shared store"));
}

#[tokio::test]
async fn commits_are_listed_by_path_and_newest_first() {
    let project = repository().await;
    let all = project.call("code.log", json!({})).await.unwrap();
    assert_eq!(titles(&all), ["Drop refresh tokens", "Begin"]);
    let some = project
        .call("code.log", json!({ "path": "src" }))
        .await
        .unwrap();
    assert_eq!(titles(&some), ["Begin"]);
    let none = project
        .call(
            "code.log",
            json!({ "path": "src", "query": "refresh tokens" }),
        )
        .await
        .unwrap();
    assert_eq!(titles(&none), [""; 0]);
}

#[tokio::test]
async fn a_history_that_was_rewritten_is_read_anew() {
    let project = repository().await;
    assert_eq!(project.index().await["commits"], 2);
    assert_eq!(project.index().await["commits"], 0);
    git(
        &project.root(),
        &["commit", "-q", "--amend", "-m", "Keep cookies"],
    );
    assert_eq!(project.index().await["commits"], 2);
    let found = project
        .call("code.log", json!({ "query": "refresh tokens" }))
        .await
        .unwrap();
    assert_eq!(titles(&found), [""; 0]);
    let found = project
        .call("code.log", json!({ "query": "cookies" }))
        .await
        .unwrap();
    assert_eq!(titles(&found), ["Keep cookies"]);
}

#[tokio::test]
async fn lines_are_blamed_on_commits_and_new_ones_on_none() {
    let project = repository().await;
    project.write("src/a.rs", "fn new() {}\nfn a() {}\nfn b() {}\n");
    let blame = project
        .call("code.blame", json!({ "path": "src/a.rs" }))
        .await
        .unwrap();
    let ranges: Vec<(u64, u64, &Value)> = blame["ranges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| {
            let line = |name: &str| range[name].as_u64().unwrap();
            (line("line_start"), line("line_end"), &range["subject"])
        })
        .collect();
    assert_eq!(ranges, [(1, 1, &Value::Null), (2, 3, &json!("Begin"))]);
    let error = project
        .call("code.blame", json!({ "path": "../out" }))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
}

/// A repository can name programs in its configuration; none of them may run.
#[cfg(unix)]
#[tokio::test]
async fn a_hostile_repository_runs_nothing() {
    let project = repository().await;
    let root = project.root();
    let mark = root.join("ran");
    let command = format!("touch '{}'; cat", mark.display());
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "core.editor",
    ] {
        git(&root, &["config", key, &command]);
    }
    git(&root, &["config", "log.showSignature", "true"]);
    project.write(".gitattributes", "* diff=evil filter=evil\n");
    project.write("src/a.rs", "fn changed() {}\n");
    project.index().await;
    for (method, params) in [
        (
            "code.log",
            json!({ "query": "refresh tokens", "path": "src" }),
        ),
        ("code.log", json!({})),
        ("code.blame", json!({ "path": "src/a.rs" })),
    ] {
        project.call(method, params).await.unwrap();
    }
    assert!(!mark.exists(), "the repository's program ran");
    // It would have, had git been asked as usual.
    let usual = Command::new("git")
        .args(["diff"])
        .current_dir(&root)
        .output();
    assert!(usual.is_ok() && mark.exists());
}

#[tokio::test]
async fn without_a_repository_there_is_no_history() {
    let project = TestProject::with(&[("a.md", "x")]).await;
    let error = project.call("code.log", json!({})).await.unwrap_err();
    assert_eq!(error.message, "the project is not in a git repository");
}

#[tokio::test]
async fn lines_are_found_by_pattern_and_glob() {
    let project = TestProject::with(&[
        ("src/a.rs", "fn alpha() {}\nfn beta() {}\n"),
        ("src/b.py", "def alpha(): pass\n"),
        ("pic.png", "\u{0}fn alpha"),
    ])
    .await;
    let places = async |params: Value| -> Vec<String> {
        let found = project.call("code.grep", params).await.unwrap();
        let place = |found: &Value| {
            let source = &found["source"];
            format!(
                "{}:{}",
                source["path"].as_str().unwrap(),
                source["line_start"]
            )
        };
        let matches = found["matches"].as_array().unwrap();
        matches.iter().map(place).collect()
    };
    let everywhere = json!({ "pattern": r"\balpha\(" });
    assert_eq!(places(everywhere).await, ["src/a.rs:1", "src/b.py:1"]);
    let rust = json!({ "pattern": "ALPHA", "glob": "*.rs", "ignore_case": true });
    assert_eq!(places(rust).await, ["src/a.rs:1"]);
    let others = json!({ "pattern": "alpha", "glob": "!*.rs" });
    assert_eq!(places(others).await, ["src/b.py:1"]);
    let one = project
        .call("code.grep", json!({ "pattern": "fn", "limit": 1 }))
        .await
        .unwrap();
    assert_eq!(one["more"], true);
    for wrong in [
        json!({ "pattern": "(" }),
        json!({ "pattern": "a", "glob": "[" }),
    ] {
        let error = project.call("code.grep", wrong).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams, "{}", error.message);
    }
}
