//! `dodona contexts` and `dodona usage`.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, Outcome, assert_shown};

/// A conversation of the data model, in a file beside the home.
fn document(home: &Home) -> &'static str {
    let exchange = |id: &str, role: &str, content: &str, seconds: u32| {
        json!({
            "id": id, "role": role, "content": content, "token_count": 40,
            "timestamp": format!("2025-01-15T10:30:{seconds:02}Z"),
        })
    };
    let mut searched = exchange("e2", "assistant", "", 2);
    searched["tool_calls"] = json!([{
        "id": "call_1", "name": "code_search", "arguments": { "query": "login token" },
        "result": "Found src/jwt.rs", "status": "success", "duration_ms": 234,
    }]);
    let mut found = exchange("e3", "tool", "Found src/jwt.rs", 3);
    found["tool_call_id"] = json!("call_1");
    let text = json!({ "context": {
        "id": "c1", "user_id": "somebody", "project_id": "elsewhere",
        "session_start": "2025-01-15T10:29:00Z", "last_model": "tiny",
        "key_decisions": ["Tokens last a day"],
        "recent_exchanges": [
            exchange("e1", "user", "How does login work?", 1),
            searched,
            found,
            exchange("e4", "assistant", "It issues a token.\nSee src/jwt.rs.", 4),
            exchange("e5", "user", "Since when?", 5),
            exchange("e6", "assistant", "Since March.", 6),
        ],
    }});
    fs::write(home.path().with_file_name("login.json"), text.to_string()).unwrap();
    "login.json"
}

/// A home with one conversation, named `login`.
fn filled() -> Home {
    let home = Home::new();
    let imported = home.run(&["contexts", "import", document(&home), "--name", "login"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert_eq!(
        imported.stdout.trim().len(),
        36,
        "the id alone: {}",
        imported.stdout
    );
    home
}

/// Compares, without ids that are shown by their end and without the minute.
#[track_caller]
fn assert_told(name: &str, outcome: &Outcome) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"(?m)(^|  )[0-9a-f]{8}(  |$)", "$1[end]$2");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d\b", "[minute]");
    settings.bind(|| assert_shown(name, outcome));
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let outcome = home.run(&[arguments, &["--json"]].concat());
    let parsed = serde_json::from_str(&outcome.stdout);
    parsed.unwrap_or_else(|_| panic!("{arguments:?}: {}{}", outcome.stdout, outcome.stderr))
}

#[test]
fn without_conversations_the_list_says_how_to_begin_one() {
    let home = Home::new();
    assert_told("contexts_none", &home.run(&["contexts", "list"]));
    assert_told("contexts_show_none", &home.run(&["contexts", "show"]));
}

#[test]
fn conversations_are_listed_and_shown() {
    let home = filled();
    home.run(&["contexts", "new", "other", "--budget", "4000"]);
    let fact = [
        "kind=fact",
        "text=Refresh tokens were dropped",
        "context_id=login",
    ];
    let remembered = home.run(&[&["call", "--project", ".", "agent.remember"], &fact[..]].concat());
    assert_eq!(remembered.code, Some(0), "{}", remembered.stderr);
    assert_told("contexts_list", &home.run(&["contexts", "list"]));
    assert_told("contexts_show", &home.run(&["contexts", "show", "login"]));
}

#[test]
fn an_exchange_is_named_by_its_end_and_taken_back() {
    let home = filled();
    let shown = json(&home, &["contexts", "show", "login"]);
    let since_when = &shown["context"]["recent_exchanges"][4];
    assert_eq!(since_when["content"], "Since when?");
    let id = since_when["id"].as_str().unwrap();
    let end = &id[id.len() - 8..];
    let forked = json(
        &home,
        &["contexts", "fork", "login", "--at", end, "--name", "branch"],
    );
    assert_eq!(forked["exchanges"], 5);
    let rewound = home.run(&["contexts", "rewind", end, "--context", "login"]);
    assert_eq!(
        rewound.stdout, "took back 2 exchanges\n",
        "{}",
        rewound.stderr
    );
    let shown = json(&home, &["contexts", "show", "login"]);
    assert_eq!(
        shown["context"]["recent_exchanges"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    let again = home.run(&["contexts", "rewind", end, "--context", "login"]);
    assert_eq!(again.code, Some(2));
    assert!(
        again
            .stderr
            .contains(&format!("there is no exchange `{end}`")),
        "{}",
        again.stderr
    );
}

#[test]
fn an_export_is_imported_again() {
    let home = filled();
    let exported = home.run(&["contexts", "export", "login"]);
    let path = home.path().with_file_name("copy.json");
    fs::write(&path, &exported.stdout).unwrap();
    let copied = json(
        &home,
        &["contexts", "import", "copy.json", "--name", "copy"],
    );
    assert_eq!(copied["exchanges"], 6);
    let piped = home.run_with_input(&["contexts", "import", "-"], &exported.stdout);
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
    assert_eq!(
        json(&home, &["contexts", "list"]).as_array().unwrap().len(),
        3
    );
    let line = home.run(&["contexts", "export", "login", "--json"]).stdout;
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn a_file_that_cannot_be_imported_is_told_with_the_field() {
    let home = Home::new();
    let write = |text: &str| fs::write(home.path().with_file_name("bad.json"), text).unwrap();
    assert_told(
        "contexts_import_missing",
        &home.run(&["contexts", "import", "none.json"]),
    );
    write("{");
    assert_told(
        "contexts_import_no_json",
        &home.run(&["contexts", "import", "bad.json"]),
    );
    write("{}");
    assert_told(
        "contexts_import_no_document",
        &home.run(&["contexts", "import", "bad.json"]),
    );
    document(&home);
    let text = fs::read_to_string(home.path().with_file_name("login.json")).unwrap();
    write(&text.replacen("\"token_count\":40", "\"token_count\":0", 1));
    assert_told(
        "contexts_import_bad_rule",
        &home.run(&["contexts", "import", "bad.json"]),
    );
}

#[test]
fn a_closed_conversation_is_listed_only_on_request() {
    let home = filled();
    assert_told("contexts_close", &home.run(&["contexts", "close", "login"]));
    assert_eq!(json(&home, &["contexts", "list"]), json!([]));
    let all = json(&home, &["contexts", "list", "--all"]);
    assert_eq!(all[0]["status"], "closed");
    let id = all[0]["id"].as_str().unwrap();
    assert_told(
        "contexts_close_again",
        &home.run(&["contexts", "close", id]),
    );
}

#[test]
fn names_and_budgets_are_checked() {
    let home = filled();
    assert_told(
        "contexts_name_taken",
        &home.run(&["contexts", "new", "login"]),
    );
    assert_told(
        "contexts_small_budget",
        &home.run(&["contexts", "new", "x", "--budget", "10"]),
    );
    assert_told(
        "contexts_unknown",
        &home.run(&["contexts", "show", "nowhere"]),
    );
}

#[test]
fn usage_without_models_says_so() {
    let home = filled();
    assert_told("usage_none", &home.run(&["usage"]));
    let report = json(&home, &["usage", "--by", "model", "--since", "7d"]);
    assert_eq!(
        (&report["by"], &report["total"]["requests"]),
        (&json!("model"), &json!(0))
    );
    assert_told(
        "usage_unknown_context",
        &home.run(&["usage", "--context", "nowhere"]),
    );
}

/// A conversation of many questions, in a file beside the home.
fn long_document(home: &Home) -> &'static str {
    let mut exchanges = Vec::new();
    for n in 0..12 {
        let said = [
            ("user", format!("What about part {n}?")),
            (
                "assistant",
                format!(
                    "Part {n} is in src/part{n}.rs. {}",
                    "And so on. ".repeat(30)
                ),
            ),
        ];
        for (role, content) in said {
            exchanges.push(json!({
                "id": format!("{role}{n}"), "role": role, "content": content,
                "token_count": content.len() / 4 + 4,
                "timestamp": format!("2025-01-15T10:{n:02}:00Z"),
            }));
        }
    }
    let text = json!({ "context": {
        "id": "c1", "user_id": "somebody", "project_id": "elsewhere",
        "session_start": "2025-01-15T10:00:00Z", "recent_exchanges": exchanges,
    }});
    fs::write(home.path().with_file_name("long.json"), text.to_string()).unwrap();
    "long.json"
}

#[test]
fn a_conversation_is_shortened_and_shown_with_where_each_line_comes_from() {
    let home = Home::new();
    let imported = home.run(&["contexts", "import", long_document(&home), "--name", "long"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let pin = [
        "context",
        "pin",
        "Alice signs releases.",
        "--context",
        "long",
    ];
    let pinned = home.run(&pin);
    assert_eq!(pinned.stdout, "pinned      Alice signs releases.\n");
    let done = home.run(&["context", "compact", "long"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("from "), "{}", done.stdout);
    assert!(done.stdout.ends_with("(extractive)\n"), "{}", done.stdout);
    let again = home.run(&["contexts", "compact", "long", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["compacted"], false);
    let shown = home.run(&["context", "show", "long"]).stdout;
    assert!(
        shown.contains("\npinned      Alice signs releases.\n"),
        "{shown}"
    );
    let line = shown.lines().find(|line| line.starts_with("file "));
    let (text, origin) = line.unwrap().split_once("  ← ").unwrap();
    assert_eq!(text, "file        src/part0.rs");
    assert_eq!(origin.len(), 8, "the end of an id: {origin}");
    let released = home.run(&[&pin[..], &["--release"]].concat());
    assert_eq!(released.stdout, "nothing is pinned\n");
}

#[test]
fn there_is_nothing_to_shorten_in_a_conversation_that_is_not_there() {
    let home = Home::new();
    let outcome = home.run(&["contexts", "compact", "nowhere"]);
    assert_ne!(outcome.code, Some(0));
    assert!(
        outcome
            .stderr
            .contains("there is no conversation `nowhere`")
    );
}

#[test]
fn an_export_in_the_form_of_the_seed_is_imported_again() {
    let home = filled();
    let export = |context: &str| {
        let arguments = ["contexts", "export", context, "--format", "seed", "--json"];
        let exported = home.run(&arguments);
        assert_eq!(exported.code, Some(0), "{}", exported.shown());
        let document: Value = serde_json::from_str(&exported.stdout).unwrap();
        document
    };
    let original = export("login");
    let texts = |document: &Value, field: &str| -> Vec<Value> {
        // The seed stores lists as JSON text in a column.
        serde_json::from_str(document[field].as_str().unwrap()).unwrap()
    };
    let exchanges = texts(&original, "recent_exchanges_json");
    assert!(!exchanges.is_empty(), "{original}");
    for field in ["role", "content", "timestamp", "token_count"] {
        assert!(
            exchanges[0].get(field).is_some(),
            "{field}: {}",
            exchanges[0]
        );
    }
    texts(&original, "key_decisions_json");
    let path = home.path().with_file_name("seed.json");
    fs::write(&path, original.to_string()).unwrap();
    let copied = home.run(&["contexts", "import", "seed.json", "--name", "copy"]);
    assert_eq!(copied.code, Some(0), "{}", copied.shown());
    let copy = export("copy");
    // A copy is a conversation of its own, with exchanges of its own.
    assert_ne!(copy["id"], original["id"]);
    let contents = |document: &Value| {
        let mut exchanges = texts(document, "recent_exchanges_json");
        for exchange in &mut exchanges {
            exchange.as_object_mut().unwrap().remove("id");
        }
        let fields = ["key_decisions_json", "token_budget", "compressed_summary"];
        (exchanges, fields.map(|field| document[field].clone()))
    };
    assert_eq!(contents(&copy), contents(&original));
}
