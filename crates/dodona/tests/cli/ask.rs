//! `dodona ask`, `dodona search` and `dodona index`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::Home;

/// A project beside the home, and the name of its directory.
fn project(home: &Home) -> &'static str {
    let root = home.path().with_file_name("project");
    let write = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        &root.join("docs/login.md"),
        "# Login\n\nLogin issues a token that lasts a day.\n",
    );
    write(
        &root.join("src/jwt.rs"),
        "/// Issues a login token.\npub fn issue_token() {}\n",
    );
    "project"
}

#[test]
fn an_answer_shows_what_was_searched_and_what_it_rests_on() {
    let home = Home::new();
    let asked = home.run(&["ask", "--project", project(&home), "How does login work?"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert!(
        asked
            .stderr
            .contains("› code.search \"How does login work?\""),
        "{}",
        asked.stderr
    );
    assert!(
        asked
            .stdout
            .contains("Login issues a token that lasts a day. [1]"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("No model was used"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("[1] docs/login.md:1-3"),
        "{}",
        asked.stdout
    );
}

#[test]
fn an_answer_is_one_object_for_programs() {
    let home = Home::new();
    let asked = home.run(&[
        "ask",
        "--project",
        project(&home),
        "How does login work?",
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&asked.stdout).unwrap();
    let source = &answer["sources"][0];
    assert_eq!(
        (&source["path"], &source["kind"]),
        (&json!("docs/login.md"), &json!("note"))
    );
    assert_eq!(
        (&source["line_start"], &source["line_end"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(source["hash"].as_str().unwrap().len(), 64);
    assert_eq!(answer["model"], "offline");
    assert!(answer["timings"]["total_ms"].is_u64());
}

#[test]
fn passages_are_found_and_filtered() {
    let home = Home::new();
    let root = project(&home);
    let found = home.run(&["search", "--project", root, "login token"]);
    assert!(
        found.stdout.contains("docs/login.md:1-3"),
        "{}",
        found.stdout
    );
    let found = home.run(&[
        "search",
        "--project",
        root,
        "login token",
        "--kind",
        "code",
        "--json",
    ]);
    let passages: Value = serde_json::from_str(&found.stdout).unwrap();
    let paths: Vec<&str> = passages
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["source"]["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["src/jwt.rs"]);
    assert_eq!(
        home.run(&["search", "--project", root, "zebra"]).stdout,
        "nothing matches\n"
    );
}

#[test]
fn an_index_tells_what_changed() {
    let home = Home::new();
    let root = project(&home);
    let first = home.run(&["index", "--project", root]);
    assert_eq!(
        first.stdout, "2 files · 1 note · 2 changed · 0 removed · 0 skipped\n",
        "{}",
        first.stderr
    );
    let second = home.run(&["index", "--project", root, "--json"]);
    let summary: Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(
        summary,
        json!({ "files": 2, "notes": 1, "changed": 0, "removed": 0, "commits": 0, "skipped": 0 })
    );
}
