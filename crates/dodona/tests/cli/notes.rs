//! `dodona notes`.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::Home;

fn vault(home: &Home) -> &'static str {
    let root = home.path().with_file_name("vault");
    fs::create_dir_all(root.join("auth")).unwrap();
    let index = "# Start\n\nSee [[auth/login|the login]], [[jwt]] and [[nowhere]]. #home\n";
    fs::write(root.join("index.md"), index).unwrap();
    let login = "---\naliases: [JWT]\ntags: [auth]\n---\n# Login\n\nA token lasts a day.\n";
    fs::write(root.join("auth/login.md"), login).unwrap();
    "vault"
}

#[test]
fn notes_are_listed_read_searched_and_followed() {
    let home = Home::new();
    let vault = vault(&home);
    for arguments in [
        &["notes", "list"][..],
        &["notes", "list", "auth"],
        &["notes", "read", "auth/login.md"],
        &["notes", "search", "how long does a token last?"],
        &["notes", "backlinks", "auth/login.md"],
        &["notes", "links"],
        &["notes", "links", "--broken"],
        &["notes", "tags"],
        &["notes", "read", "../outside.md"],
    ] {
        let arguments = [arguments, &["--project", vault]].concat();
        assert_snapshot!(home.run(&arguments).shown());
    }
}

#[test]
fn notes_are_written_moved_deleted_and_brought_back() {
    let home = Home::new();
    let vault = vault(&home);
    for arguments in [
        &[
            "notes",
            "write",
            "auth/login.md",
            "--body",
            "A token lasts an hour.",
        ][..],
        &["notes", "read", "auth/login.md"],
        &["notes", "diff", "auth/login.md"],
        &["notes", "move", "auth/login.md", "guide/Signing in.md"],
        &["notes", "read", "index.md"],
        &["notes", "delete", "index.md"],
        &["notes", "index", ".", "--title", "All", "--summaries"],
        &["notes", "read", "index.md"],
        &["notes", "undo", "index.md"],
        &["notes", "undo", "index.md"],
        &["notes", "undo", "--change", "5"],
        &["notes", "undo"],
        &["notes", "write", "../outside.md", "--body", "x"],
        &[
            "notes",
            "write",
            "index.md",
            "--body",
            "x",
            "--if-version",
            "none",
        ],
        &["notes", "history"],
        &["notes", "history", "guide/Signing in.md"],
        &["notes", "trash"],
    ] {
        let arguments = [arguments, &["--project", vault]].concat();
        insta::with_settings!({filters => vec![(r"\d{4}-\d\d-\d\d \d\d:\d\d", "[time]")]}, {
            assert_snapshot!(home.run(&arguments).shown());
        });
    }
    let index = home.path().with_file_name("vault").join("index.md");
    assert!(
        fs::read_to_string(index)
            .unwrap()
            .contains("[[guide/Signing in|the login]]")
    );
}

#[test]
fn every_list_of_notes_is_also_for_programs() {
    let home = Home::new();
    let vault = vault(&home);
    for (arguments, entries) in [
        (&["notes", "list"][..], 2),
        (&["notes", "search", "token"], 1),
        (&["notes", "backlinks", "auth/login.md"], 2),
        (&["notes", "links"], 1),
        (&["notes", "links", "--broken"], 1),
        (&["notes", "tags"], 2),
        (&["notes", "history"], 1),
        (&["notes", "history", "index.md"], 1),
        (&["notes", "trash"], 0),
    ] {
        let arguments = [arguments, &["--project", vault, "--json"]].concat();
        let told: Value = serde_json::from_str(&home.run(&arguments).stdout).unwrap();
        assert_eq!(
            told.as_array().map(Vec::len),
            Some(entries),
            "{arguments:?}"
        );
    }
}
