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
    has("scout      Finds things.  at most 3 turns · small · user\n");
    has("           code_read, code_search\n");
    has("unknown key `colour`");
    has("there is no model `small`");
    let listed = home.run(&["agents", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["agents"][2]["name"], "scout");
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

fn succeeds(home: &Home, arguments: &[&str]) -> Value {
    let outcome = home.run(&[arguments, &["--json"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn fails(home: &Home, arguments: &[&str], expected: &str) {
    let outcome = home.run(arguments);
    assert_ne!(outcome.code, Some(0), "{}", outcome.shown());
    assert!(outcome.stderr.contains(expected), "{}", outcome.shown());
}

/// The folder in which the program is started, as a project.
const IN_PROJECT: [&str; 2] = ["--project", "."];

fn define_scout(home: &Home) {
    let tools = "code_search,code_read";
    let prompt = "You are {{ agent }}.";
    let define = ["agents", "define", "scout", "--tools", tools];
    succeeds(home, &[&define[..], &["--prompt", prompt]].concat());
}

#[test]
fn a_question_goes_to_the_agent_that_it_names() {
    let home = Home::new();
    let model = Model::of(&home);
    define_scout(&home);
    model.says(Reply::text("Here."));
    let asked = home.run(
        &[
            &["ask", "--agent", "scout", "Where is it?"][..],
            &IN_PROJECT,
        ]
        .concat(),
    );
    assert_eq!(asked.code, Some(0), "{}", asked.shown());
    // The request of the seed, over the wire.
    model.says(Reply::text("There."));
    let request = ["call", "agent.chat", "agent_id=scout", "message=And now?"];
    let answered = home.run(&[&request[..], &IN_PROJECT].concat());
    assert_eq!(answered.code, Some(0), "{}", answered.shown());
    let requests = model.requests();
    for request in &requests {
        assert_eq!(request["messages"][0]["content"], "You are scout.");
        let tools = request["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = tools
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        assert!(names.contains(&"code_search"), "{names:?}");
        assert!(!names.contains(&"vault_write"), "{names:?}");
        // Every agent can read the rest of a result that was cut.
        assert!(names.contains(&"agent_result"), "{names:?}");
    }
    // The second question continues the agent's own conversation.
    assert!(requests[1].to_string().contains("Where is it?"));
    let contexts = succeeds(&home, &[&["contexts", "list"][..], &IN_PROJECT].concat());
    assert_eq!(contexts[0]["agent_id"], "scout", "{contexts}");
}

#[test]
fn an_agent_that_is_not_defined_is_reported_with_the_nearest_one() {
    let home = Home::new();
    let model = Model::of(&home);
    define_scout(&home);
    fails(&home, &["ask", "--agent", "scuot", "Hello?"], "scout");
    assert!(model.requests().is_empty());
    fails(&home, &["agents", "show", "nobody"], "nobody");
    fails(&home, &["agents", "delete", "nobody"], "nobody");
    // Bundled agents cannot be deleted.
    fails(&home, &["agents", "delete", "librarian"], "librarian");
    succeeds(&home, &["agents", "delete", "scout"]);
    fails(&home, &["ask", "--agent", "scout", "Hello?"], "scout");
    let folder = home.path().join("config/agents");
    let left: Vec<_> = fs::read_dir(&folder).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_invalid_definition_writes_nothing() {
    let home = Home::new();
    let define = |name: &str, tools: &str, prompt: &str, expected: &str| {
        let arguments = [
            "agents", "define", name, "--tools", tools, "--prompt", prompt,
        ];
        fails(&home, &arguments, expected);
    };
    define("scout", "code_serch", "You.", "code_search");
    define("scout", "code_search", "You are {{ agent", "prompt");
    define("Scout!", "code_search", "You.", "lower-case");
    define("oracle", "code_search", "You.", "oracle");
    let folder = home.path().join("config/agents");
    assert!(!folder.exists() || fs::read_dir(&folder).unwrap().next().is_none());
    define_scout(&home);
    let before = files_of(&folder);
    // An existing definition is replaced only on request, and a failed replacement changes nothing.
    define("scout", "code_read", "Other.", "`replace`");
    let replace = ["agents", "define", "scout", "--tools", "no_such_tool"];
    let replace = [&replace[..], &["--prompt", "Other.", "--replace"]].concat();
    fails(&home, &replace, "no_such_tool");
    assert_eq!(files_of(&folder), before);
}

fn files_of(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap();
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

#[test]
fn a_note_to_oneself_is_read_by_the_model_in_the_next_question() {
    let home = Home::new();
    let model = Model::of(&home);
    succeeds(&home, &[&["index"][..], &IN_PROJECT].concat());
    let message = "message=Run the tests before you answer.";
    let notify = ["call", "agent.notify_self", message];
    let stored = succeeds(&home, &[&notify[..], &IN_PROJECT].concat());
    assert_eq!(stored["queued"], true, "{stored}");
    model.says(Reply::text("Done."));
    assert_eq!(
        home.run(&[&["ask", "Is it done?"][..], &IN_PROJECT].concat())
            .code,
        Some(0)
    );
    let request = model.requests().pop().unwrap().to_string();
    assert_eq!(
        request.matches("Run the tests before you answer.").count(),
        1
    );
}

#[test]
fn the_model_can_leave_itself_a_note() {
    let home = Home::new();
    let model = Model::of(&home);
    let arguments = json!({ "message": "Look at the log again." }).to_string();
    let reply = Reply::stream().tool_call("call-1", "agent_notify_self", &[&arguments]);
    model.says(reply);
    model.says(Reply::text("I will."));
    assert_eq!(home.run(&["ask", "Remind yourself."]).code, Some(0));
    model.says(Reply::text("I have."));
    assert_eq!(home.run(&["ask", "Did you?"]).code, Some(0));
    let request = model.requests().pop().unwrap();
    let question = request["messages"].as_array().unwrap().iter();
    let told = question.filter(|message| {
        message["role"] == "user" && message.to_string().contains("Look at the log again.")
    });
    assert_eq!(told.count(), 1, "{request}");
}
