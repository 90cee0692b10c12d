//! `dodona ask`, `dodona search` and `dodona index`.

use std::fs;
use std::io::Read;
use std::path::Path;

use dodona_testkit::model_server::{Gate, Reply, Step};
use serde_json::{Value, json};

use crate::harness::{Home, assert_shown};
use crate::model::Model;

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
fn text_goes_through_a_pipe_as_it_comes() {
    let home = Home::new();
    let model = Model::of(&home);
    let gate = Gate::new();
    model.says(Reply::stream().add_text("Hel").wait(&gate).add_text("lo."));
    let mut child = home.command(&["ask", "Hi"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 3];
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"Hel");
    gate.open();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "lo.\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn only_the_answer_and_its_sources_go_to_standard_output() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(
        Reply::stream()
            .reasoning("Nobody need see this.")
            .tool_call("a", "vault_search", &[r#"{"query":"login"}"#])
            .tool_call("b", "nosuch", &["{}"]),
    );
    model.says(Reply::text("Login issues a token [1].\n\nIt is fast."));
    let asked = home.run(&["ask", "--project", project(&home), "How does login work?"]);
    assert_eq!(
        asked.stdout,
        "Login issues a token [1].\n\nIt is fast.\n  [1] docs/login.md:1-3  Login\n"
    );
    let mut told: Vec<&str> = asked.stderr.lines().collect();
    assert_eq!(told.len(), 3, "{}", asked.stderr);
    // Results are printed in the order in which the tools end.
    told[..2].sort_unstable();
    assert!(told[0].starts_with("› nosuch · ") && told[0].contains(" · error: "));
    assert!(told[1].starts_with("› vault.search \"login\" · "));
    assert_eq!(told[2], "note: 1 paragraph without a citation");
}

#[test]
fn what_a_model_says_before_it_looks_is_another_paragraph() {
    let home = Home::new();
    let model = Model::of(&home);
    let look = Reply::stream().add_text("Let me see.");
    model.says(look.tool_call("a", "vault_search", &[r#"{"query":"login"}"#]));
    model.says(Reply::text("Nothing."));
    let asked = home.run(&["ask", "Where is login?"]);
    assert_eq!(asked.stdout, "Let me see.\n\nNothing.\n");
}

#[test]
fn programs_learn_what_an_answer_took() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("Because.").usage(1000, 200, 0));
    home.run(&["contexts", "new", "why"]);
    let arguments = [
        "ask",
        "Why?",
        "--json",
        "--context",
        "why",
        "--model",
        "other",
        "--no-tools",
    ];
    let asked = home.run(&arguments);
    assert_eq!(asked.stderr, "");
    let answer: Value = serde_json::from_str(&asked.stdout).unwrap();
    assert_eq!(answer["answer"], "Because.");
    assert_eq!(answer["model"], "other");
    assert_eq!(answer["usage"]["input_tokens"], 1000);
    assert_eq!(answer["cost_micros"], 1400);
    assert_eq!(answer["uncited"], json!(["Because."]));
    assert_eq!(answer["truncated"], false);
    assert!(answer["timings"]["first_text_ms"].is_u64());
    assert_eq!(answer["query_id"].as_str().unwrap().len(), 36);
    let sent = &model.requests()[0];
    assert_eq!(sent["model"], "other-1");
    assert!(sent.get("tools").is_none(), "{}", sent["tools"]);
    let shown = home.run(&["contexts", "show", "why", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["context"]["id"], answer["context_id"]);
}

#[test]
fn a_question_is_read_from_standard_input() {
    let home = Home::new();
    let model = Model::of(&home);
    for arguments in [&["ask"][..], &["ask", "-"]] {
        model.says(Reply::text("Yes."));
        let asked = home.run_with_input(arguments, "Is it\nso?\n");
        assert_eq!(asked.stdout, "Yes.\n", "{}", asked.stderr);
        assert_eq!(model.question(), "Is it\nso?");
    }
    assert_shown("ask_empty", &home.run(&["ask"]));
}

#[test]
fn what_goes_wrong_is_told_with_the_next_thing_to_try() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::status(401).message("bad key"));
    assert_shown("ask_wrong_key", &home.run(&["ask", "Hi"]));
    assert_shown(
        "ask_unknown_model",
        &home.run(&["ask", "Hi", "--model", "mian"]),
    );
    assert_shown(
        "ask_unknown_context",
        &home.run(&[
            "ask",
            "Hi",
            "--context",
            "0192f0c1-2233-7455-8677-8899aabbccdd",
        ]),
    );
}

#[test]
fn an_answer_that_was_cut_off_says_so() {
    let home = Home::new();
    let model = Model::of(&home);
    let cut = Reply::text("It is because").step(Step::StopReason("length".to_owned()));
    model.says(cut);
    let asked = home.run(&["ask", "Why?", "--no-tools"]);
    assert_eq!(asked.stdout, "It is because\n");
    assert_eq!(
        asked.stderr,
        "note: the answer was cut off at the output limit of the model\n"
    );
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

/// The content of the last message that a model was sent: the result of its tool.
fn last_result(model: &Model) -> String {
    let request = model.requests().pop().unwrap();
    let message = request["messages"].as_array().unwrap().last().unwrap();
    message["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_model_reads_a_large_file_in_parts_of_whole_lines() {
    let home = Home::new();
    let model = Model::of(&home);
    let folder = home.path().with_file_name("large");
    fs::create_dir_all(&folder).unwrap();
    let lines: Vec<String> = (1..=4_000)
        .map(|n| format!("\tname = \"package-{n}\" # line {n}"))
        .collect();
    fs::write(folder.join("large.toml"), lines.join("\n") + "\n").unwrap();
    let indexed = home.run(&["index", "--project", "large"]);
    assert_eq!(indexed.code, Some(0), "{}", indexed.shown());
    let mut read: Vec<String> = Vec::new();
    while read.len() < lines.len() {
        let from = read.len() + 1;
        let arguments = json!({ "path": "large.toml", "from": from }).to_string();
        model.says(Reply::stream().tool_call("a", "code_read", &[&arguments]));
        // One of these is the number of the part; the others are of passages or of nothing.
        model.says(Reply::text("Read [1] [2] [3] [4]."));
        // A conversation of its own for each part, so that all have the same room.
        let name = format!("part-{from}");
        let begun = home.run(&["contexts", "new", &name, "--project", "large"]);
        assert_eq!(begun.code, Some(0), "{}", begun.shown());
        let asked = home.run(&["ask", "Read on.", "--project", "large", "--context", &name]);
        assert_eq!(asked.code, Some(0), "{}", asked.shown());
        let result = last_result(&model);
        let next = result.contains("Read on with code_read ");
        assert!(!next || result.len() > 10_000, "{} bytes", result.len());
        for (number, line) in result.lines().filter_map(|line| line.split_once('\t')) {
            read.push(line.to_owned());
            assert_eq!(number, read.len().to_string());
        }
        // The citation of the part holds: it covers the lines that were shown.
        let cited = format!("large.toml:{from}-{}", read.len());
        assert!(asked.stdout.contains(&cited), "{}", asked.shown());
        let call = json!({ "path": "large.toml", "from": read.len() + 1 });
        assert!(!next || result.contains(&call.to_string()), "{result}");
    }
    assert_eq!(read, lines);
}

#[test]
fn a_conversation_that_is_named_is_created_and_continued() {
    let home = Home::new();
    let model = Model::of(&home);
    for (question, created) in [("One?", true), ("Two?", false)] {
        model.says(Reply::text("Yes."));
        let asked = home.run(&["ask", question, "--context", "release", "--no-tools"]);
        assert_eq!(asked.code, Some(0), "{}", asked.shown());
        let notice = "created conversation `release`";
        assert_eq!(asked.stderr.contains(notice), created, "{}", asked.stderr);
    }
    let listed = home.run(&["query", "list", "--context", "release", "--json"]);
    let queries: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        queries.as_array().map(Vec::len),
        Some(2),
        "{}",
        listed.stdout
    );
    // Without an id the latest query is meant.
    let shown = home.run(&["query", "show"]);
    assert!(shown.stdout.contains("› Two?"), "{}", shown.shown());
    assert_eq!(home.run(&["trace"]).code, Some(0));
    assert_eq!(home.run(&["replay"]).code, Some(0));
}
