//! The permissions of files, and texts that could steer a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::harness::Home;
use crate::projects::Wire;

/// Every file and directory below a path that others may see.
fn open_to_others(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        if mode != expected {
            found.push(format!("{mode:o} {}", path.display()));
        }
        if metadata.is_dir() {
            open_to_others(&path, found);
        }
    }
}

#[test]
fn every_file_of_the_home_is_private_after_much_use() {
    let wire = Wire::on(Home::new());
    let folder = wire.folder();
    let root = folder.join("project");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("note.md"), "# Note\n\nneedle\n").unwrap();
    let owner = wire.owner();
    let id = owner.register(&root).unwrap();
    let call = |method: &str, params: serde_json::Value| {
        let called = owner.call(Some(&id), method, &params);
        called.unwrap_or_else(|error| panic!("{method}: {error}"))
    };
    call("vault.search", json!({ "query": "needle" }));
    call(
        "vault.write",
        json!({ "path": "sub/new.md", "body": "text" }),
    );
    call(
        "thread.push",
        json!({ "thread_id": "plans", "content": "a thought" }),
    );
    call("echo.tally", json!({}));
    let rule = "[rule]\nid = \"tell\"\ntrigger = \"on_tool_call\"\n[condition]\nexpression = \"True\"\n[action]\ntype = \"log\"\nmessage = \"x\"\n";
    call(
        "rules.write",
        json!({ "scope": "user", "file": "tell.toml", "text": rule }),
    );
    let home = &wire.server.home;
    for arguments in [
        &["plugins", "new", "mine", "--luau"][..],
        &["plugins", "disable", "echo"],
        &["plugins", "add", "gone", "--", "/nowhere/at/all"],
        &["init", "--user"],
        &["backup"],
        &["--project", "project", "ask", "What is the needle?"],
    ] {
        home.run(arguments);
    }
    let mut found = Vec::new();
    open_to_others(&home.path(), &mut found);
    assert!(found.is_empty(), "others may see:\n{}", found.join("\n"));
    // Notes belong to the project: they are as readable as their directory.
    let mode = |path: &str| root.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("sub"), mode("sub/new.md")), (0o755, 0o644));
}

#[test]
fn texts_in_a_pipe_carry_no_control_characters_unless_they_are_wanted_raw() {
    let home = Home::new();
    let root = home.path().with_file_name("project");
    fs::create_dir(&root).unwrap();
    let text = "a\u{1b}[2Jb\u{202e}c\u{200b}d\n";
    fs::write(root.join("note.md"), text).unwrap();
    let read = ["--project", "project", "notes", "read", "note.md"];
    let shown = home.run(&read).stdout;
    assert_eq!(shown, "a\u{fffd}[2Jb\u{fffd}cd\n");
    let raw = home.run(&[&["--raw"][..], &read].concat()).stdout;
    assert_eq!(raw, text);
    let ask = ["--project", "project", "ask", "What is in note.md?"];
    let answer = home.run(&ask);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!answer.stdout.contains(steers), "{}", answer.stdout);
    let said = home.run(&["call", "echo.say", &format!("text={}", text.trim())]);
    assert!(!said.stdout.contains(steers), "{}", said.stdout);
}
