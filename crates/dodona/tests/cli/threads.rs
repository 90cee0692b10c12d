//! `dodona threads`, and `dodona web` as far as it needs no network.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::Home;

#[test]
fn threads_are_kept_listed_found_and_cited() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().with_file_name("project")).unwrap();
    let why = "Refresh tokens were dropped because revocation needs a shared store.";
    for arguments in [
        &["threads", "list"][..],
        &[
            "threads",
            "push",
            "auth-rework",
            "--body",
            "Login was measured.",
        ],
        &[
            "threads",
            "push",
            "auth-rework",
            "--type",
            "decision",
            "--body",
            why,
        ],
        &["threads", "list"],
        &["threads", "read", "auth-rework"],
        &["threads", "seek", "why were refresh tokens dropped?"],
        &["threads", "archive", "auth-rework"],
        &["threads", "push", "auth-rework", "--body", "x"],
        &["threads", "push", "a/b", "--body", "x"],
        &["threads", "read", "nothing"],
    ] {
        let arguments = [arguments, &["--project", "project"]].concat();
        let filters = vec![
            (r"\d{4}-\d\d-\d\d \d\d:\d\d", "[time]"),
            (r"of \d+ \w+ \d{4} by", "of [day] by"),
        ];
        insta::with_settings!({filters => filters}, {
            assert_snapshot!(home.run(&arguments).shown());
        });
    }
    let asked = [
        "ask",
        "Why were refresh tokens dropped?",
        "--json",
        "--project",
        "project",
    ];
    let answer: Value = serde_json::from_str(&home.run(&asked).stdout).unwrap();
    assert!(answer["answer"].as_str().unwrap().contains(why), "{answer}");
    assert_eq!(
        answer["sources"][0]["path"], "thread:auth-rework#2",
        "{answer}"
    );
    let listed = [
        "threads",
        "list",
        "--status",
        "all",
        "--json",
        "--project",
        "project",
    ];
    let listed: Value = serde_json::from_str(&home.run(&listed).stdout).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
}

#[test]
fn nothing_of_this_machine_is_fetched_and_search_is_off() {
    let home = Home::new();
    for arguments in [
        &["web", "fetch", "http://127.0.0.1:9/"][..],
        &["web", "fetch", "ftp://example.org/"],
        &["web", "search", "anything"],
    ] {
        assert_snapshot!(home.run(arguments).shown());
    }
}
