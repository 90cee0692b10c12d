//! `dodona agents`, and what an agent did that a question was delegated to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::harness::{Home, assert_shown};
use crate::model::Model;

#[test]
fn agents_are_listed_with_what_they_may_use() {
    let home = Home::new();
    assert_shown("agents", &home.run(&["agents"]));
    let folder = home.path().join("config/agents");
    fs::create_dir_all(&folder).unwrap();
    let define = |name: &str, more: &str| {
        let text = format!(
            "name = \"{name}\"\ndescription = \"Finds things.\"\nsystem_prompt_path = \"p.md\"\n\
             allowed_tools = [\"code.search\", \"code_read\"]\n{more}"
        );
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    };
    fs::write(folder.join("p.md"), "You are {{ agent }}.").unwrap();
    define("scout", "max_turns = 3\nmodel_override = \"small\"");
    define("broken", "colour = 1");
    let listed = home.run(&["agents"]);
    assert_eq!(listed.code, Some(1), "{}", listed.stderr);
    let has = |line: &str| assert!(listed.stdout.contains(line), "{}", listed.stdout);
    has("scout      Finds things.  at most 3 turns · small\n");
    has("           code_read, code_search\n");
    has("unknown field `colour`");
    let listed = home.run(&["agents", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["agents"][1]["name"], "scout");
}

/// Three notes that link to each other, beside the home.
fn notes(home: &Home) -> &'static str {
    let root = home.path().with_file_name("notes");
    fs::create_dir_all(root.join("inbox")).unwrap();
    for (name, other) in [("one", "two"), ("two", "three"), ("three", "one")] {
        let text = format!("# {name}\n\nSee [[inbox/{other}]].\n");
        fs::write(root.join(format!("inbox/{name}.md")), text).unwrap();
    }
    "notes"
}

/// Every note of a folder.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in ["inbox", "kept"] {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

fn calls(calls: &[(&str, Value)]) -> Reply {
    let reply = Reply::stream();
    (1..)
        .zip(calls)
        .fold(reply, |reply, (n, (name, arguments))| {
            reply.tool_call(&format!("c{n}"), name, &[&arguments.to_string()])
        })
}

#[test]
fn what_the_librarian_did_is_traced_below_the_question_and_undone_as_one_step() {
    let home = Home::new();
    let model = Model::of(&home);
    let config = home.path().join("config/config.toml");
    let settings = fs::read_to_string(&config).unwrap();
    let trusted = "[approvals]\nunattended = [\"vault.move\", \"vault.create_index\"]\n";
    home.configure(&format!("{settings}{trusted}"));
    let project = notes(&home);
    let root = home.path().with_file_name(project);
    let before = files(&root);

    let task = json!({ "name": "librarian", "task": "Move all to `kept`.", "folder": "inbox" });
    model.says(calls(&[("agent_delegate", task)]));
    let moves = ["one", "two", "three"].map(|name| {
        let (old, new) = (format!("inbox/{name}.md"), format!("kept/{name}.md"));
        ("vault_move", json!({ "old_path": old, "new_path": new }))
    });
    model.says(calls(&moves));
    model.says(calls(&[(
        "vault_create_index",
        json!({ "folder": "kept" }),
    )]));
    model.says(Reply::text("Moved three notes."));
    model.says(Reply::text("It is in order."));
    let asked = home.run(&["ask", "--project", project, "Put the notes in order"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    let after = files(&root);
    assert_eq!(after.len(), 4, "and the index: {after:?}");
    assert!(after["kept/one.md"].contains("[[kept/two]]"), "{after:?}");

    let listed = home.run(&["query", "list", "--project", project, "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let query = listed[0]["id"].as_str().unwrap();
    let traced = home.run(&["trace", query, "--project", project]).stdout;
    let below = |text: &str| {
        let line = traced.lines().find(|line| line.contains(text));
        let line = line.unwrap_or_else(|| panic!("{text} in {traced}"));
        line.len() - line.trim_start().len()
    };
    assert!(
        below("agent_delegate") < below("librarian  complete"),
        "{traced}"
    );
    assert!(
        below("librarian  complete") < below("› vault_move"),
        "{traced}"
    );
    let traced = home.run(&["trace", query, "--project", project, "--json"]);
    let traced: Value = serde_json::from_str(&traced.stdout).unwrap();
    let librarian = &traced["turns"][0]["calls"][0]["agent"];
    assert_eq!(librarian["turns"].as_array().unwrap().len(), 3);

    let done = librarian["query_id"].as_str().unwrap();
    let undone = home.run(&["notes", "undo", "--query", done, "--project", project]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(files(&root), before);
}
