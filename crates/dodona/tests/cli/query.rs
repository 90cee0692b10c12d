//! `dodona query`, `dodona trace` and `dodona replay`.

use std::fs;

use serde_json::Value;

use crate::harness::Home;

/// A home in which one question was asked, and its id.
fn asked() -> (Home, String) {
    let home = Home::new();
    let notes = home.path().with_file_name("notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join("login.md"), "# Login\n\nLogin issues a token.\n").unwrap();
    let done = home.run(&[
        "ask",
        "--project",
        "notes",
        "--json",
        "How does login work?",
    ]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let listed = home.run(&["query", "list", "--project", "notes", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    (home, id)
}

#[test]
fn a_question_is_listed_shown_and_traced() {
    let (home, id) = asked();
    let end = &id[id.len() - 8..];
    let listed = home.run(&["query", "list", "--project", "notes"]);
    let row = listed.stdout.lines().nth(1).unwrap_or_default();
    assert!(row.starts_with(end), "{}", listed.stdout);
    assert!(
        listed.stdout.trim_end().ends_with("How does login work?"),
        "{}",
        listed.stdout
    );
    let shown = home.run(&["query", "show", end, "--project", "notes"]);
    assert!(
        shown.stdout.contains("› How does login work?"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("Login issues a token. [1]"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.ends_with("\n  [1] login.md:1-3\n"),
        "{}",
        shown.stdout
    );
    let traced = home.run(&["trace", end, "--project", "notes"]);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    assert!(traced.stdout.contains("turn 1"), "{}", traced.stdout);
    assert!(
        traced.stdout.contains("› code_search {\"query\":"),
        "{}",
        traced.stdout
    );
    assert!(
        traced.stdout.contains("query.start (agent)"),
        "{}",
        traced.stdout
    );
    assert!(
        traced.stdout.contains("rule rules/query-start-log fired"),
        "{}",
        traced.stdout
    );
    let traced = home.run(&["trace", end, "--project", "notes", "--json"]);
    let traced: Value = serde_json::from_str(&traced.stdout).unwrap();
    assert_eq!(traced["query"]["id"], id);
}

#[test]
fn a_replay_says_whether_it_is_the_same_and_where_it_is_not() {
    let (home, id) = asked();
    let end = &id[id.len() - 8..];
    let same = home.run(&["replay", end, "--project", "notes"]);
    assert_eq!(same.code, Some(0), "{} {}", same.stdout, same.stderr);
    let told = same.stdout.strip_prefix(end).unwrap().trim();
    let counts: Vec<&str> = told
        .split(' ')
        .filter(|word| word.parse::<u32>().is_ok())
        .collect();
    assert!(
        told.starts_with("identical: ") && counts[0] == counts[1],
        "{told}"
    );
    let prompts = home.path().join("config/prompts");
    fs::create_dir_all(&prompts).unwrap();
    fs::write(prompts.join("oracle.md"), "Be brief.").unwrap();
    let other = home.run(&["replay", end, "--project", "notes"]);
    assert_eq!(other.code, Some(1));
    assert!(
        other
            .stdout
            .starts_with(&format!("{end}  differs in turn 1 of ")),
        "{}",
        other.stdout
    );
    assert!(
        other
            .stdout
            .ends_with(": the system prompt is another one\n"),
        "{}",
        other.stdout
    );
    let json = home.run(&["replay", end, "--json", "--project", "notes"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["divergence"]["turn"], 1);
}

#[test]
fn what_is_not_there_is_said() {
    let (home, _) = asked();
    for command in [&["query", "show"][..], &["trace"], &["replay"]] {
        let arguments = [command, &["nowhere", "--project", "notes"]].concat();
        let outcome = home.run(&arguments);
        assert_ne!(outcome.code, Some(0));
        let stderr = &outcome.stderr;
        assert!(stderr.contains("there is no query `nowhere`"), "{stderr}");
        assert!(stderr.contains("hint: `dodona query list`"), "{stderr}");
    }
}
