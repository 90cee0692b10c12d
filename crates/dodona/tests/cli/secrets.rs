//! Secrets stay in the conversation: planted ones appear in no other file of the home and on no wire.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dodona_testkit::model_server::{Reply, Step};
use serde_json::json;

use crate::harness::Home;
use crate::model::Model;
use crate::projects::Wire;

/// What is planted, and the part of it that must not be found.
const SECRETS: [(&str, &str); 8] = [
    ("sk-proj-Zq8vN3rT6yLw2Kd9", "Zq8vN3rT6yLw2Kd9"),
    ("AKIAZQ8VN3RT6YLW2KD9", "ZQ8VN3RT6YLW2KD9"),
    ("ghp_mB4xC7nV1zQ9wE3rT5yU8iO2", "mB4xC7nV1zQ9wE3rT5yU8iO2"),
    ("https://bob:hunterTwoPass@example.com/x", "hunterTwoPass"),
    ("password=correctHorseBattery", "correctHorseBattery"),
    ("Bearer pL9oK8iJ7uH6yG5tF4rD", "pL9oK8iJ7uH6yG5tF4rD"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5OTk5In0.wS2xE3cR4vT5bY6n",
        "wS2xE3cR4vT5bY6n",
    ),
    (
        "-----BEGIN PRIVATE KEY-----\nTUlJRXZRSUJBREFOQmdr\n-----END PRIVATE KEY-----",
        "TUlJRXZRSUJBREFOQmdr",
    ),
];

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    for (_, core) in SECRETS {
        assert!(!text.contains(core), "{what} has {core}: {text}");
    }
}

/// Looks into every file but the conversations.
fn search(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, found);
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("agent.db") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for (_, core) in SECRETS {
            if bytes
                .windows(core.len())
                .any(|part| part == core.as_bytes())
            {
                found.push(format!("{core} in {}", path.display()));
            }
        }
    }
}

/// A text in pieces of a few characters.
fn in_pieces(mut reply: Reply, text: &str, size: usize) -> Reply {
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(size) {
        reply = reply.add_text(&piece.iter().collect::<String>());
    }
    reply
}

#[test]
fn planted_secrets_are_in_the_conversation_alone() {
    let home = Home::new();
    let model = Model::of(&home);
    let root = home.path().with_file_name("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("note.md"), "# Note\n\nText.\n").unwrap();
    let wire = Wire::on(home);
    let root = wire.folder().join("project");
    let id = wire.owner().register(&root).unwrap();
    let call = |method: &str, params: serde_json::Value| {
        let called = wire.owner().call(Some(&id), method, &params);
        called.unwrap_or_else(|error| error)
    };
    let ask = ["--project", "project", "ask", "Go on", "--json"];
    for (n, (secret, _)) in SECRETS.into_iter().enumerate() {
        // In the arguments of a tool, and in an answer that arrives in pieces.
        let arguments = json!({ "query": format!("where is {secret} used") }).to_string();
        model.says(Reply::stream().tool_call("a", "vault_search", &[&arguments]));
        let answer = format!("The key is {secret} and that is all.");
        model.says(in_pieces(Reply::stream(), &answer, n % 5 + 1));
        let asked = wire.server.home.run(&ask);
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
        assert_clean("the answer", &asked.stdout);
        assert!(asked.stdout.contains("[redacted]"), "{}", asked.stdout);
        // Quoted by a provider that refuses.
        model.says(Reply::status(400).message(&format!("wrong request: {secret}")));
        let asked = wire.server.home.run(&ask);
        assert_ne!(asked.code, Some(0));
        assert_clean("the error", &asked.stderr);
    }
    let queries = call("agent.queries", json!({ "limit": 50 }));
    assert_clean("agent.queries", &queries.to_string());
    for query in queries["queries"].as_array().unwrap() {
        let trace = call("agent.trace", json!({ "query_id": query["id"] }));
        assert_clean("agent.trace", &trace.to_string());
        if let Some(call_id) = query["call_id"].as_str() {
            let stream = call_id.split('.').next().unwrap();
            let items = call("hub.stream", json!({ "stream_id": stream }));
            assert_clean("the stream", &items.to_string());
        }
    }
    assert_clean("agent.export", &call("agent.export", json!({})).to_string());
    let raw = call("agent.export", json!({ "raw": true })).to_string();
    for (_, core) in SECRETS {
        assert!(raw.contains(core), "{core} is not in the conversation");
    }
    let home = wire.server.end();
    let mut found = Vec::new();
    search(&home.path(), &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// A model that pauses in the middle of a key for longer than text is held back. What came before
/// the pause may be shown; what comes after it is not, here, in the stream and in the journal.
#[test]
fn after_a_pause_the_rest_of_a_secret_is_redacted() {
    let home = Home::new();
    let model = Model::of(&home);
    fs::create_dir(home.path().with_file_name("project")).unwrap();
    let ask = ["--project", "project", "ask", "Go on", "--json"];
    for (secret, rest) in [
        ("sk-proj-Zq8vN3rT6yLw2Kd9Xc4B", "Lw2Kd9Xc4B"),
        ("ghp_mB4xC7nV1zQ9wE3rT5yU8iO2", "rT5yU8iO2"),
        (
            "-----BEGIN PRIVATE KEY-----\nTUlJRXZRSUJBREFOQmdr\n-----END PRIVATE KEY-----",
            "TUlJRXZRSUJBREFOQmdr",
        ),
    ] {
        let at = secret.find(rest).unwrap();
        let pause = Step::Delay(Duration::from_millis(300));
        let reply = Reply::text("The key is ")
            .add_text(&secret[..at])
            .step(pause);
        model.says(
            reply
                .add_text(rest)
                .add_text(&secret[at + rest.len()..])
                .add_text(" and that is all."),
        );
        let asked = home.run(&ask);
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
        assert!(!asked.stdout.contains(rest), "{}", asked.stdout);
        assert!(asked.stdout.contains("[redacted]"), "{}", asked.stdout);
        assert!(
            asked.stdout.contains("and that is all."),
            "{}",
            asked.stdout
        );
        let journal = fs::read(home.data().join("journal.db")).unwrap();
        let is_there = journal
            .windows(rest.len())
            .any(|part| part == rest.as_bytes());
        assert!(!is_there, "{rest} is in the journal");
    }
}

/// A plugin's hook may change what a user said; what it did is for that user to see.
#[test]
fn what_hooks_did_is_seen_by_their_user_alone_and_without_secrets() {
    let home = Home::new();
    home.configure("");
    let rules = home.path().join("config/rules");
    fs::create_dir_all(&rules).unwrap();
    let rule = "[rule]\nid = \"quotes\"\ntrigger = \"on_tool_call\"\n[condition]\nexpression = \"context.call.tool_name == 'echo_say'\"\n[action]\ntype = \"deny\"\nmessage = \"not {{ context.call.arguments.text }}\"\n";
    fs::write(rules.join("quotes.toml"), rule).unwrap();
    let wire = Wire::on(home);
    let scopes = ["echo:*", "plugins:read"];
    let (alice, bob) = (wire.user("alice", &scopes), wire.user("bob", &scopes));
    let text = json!({ "text": format!("bobs-secret-plan {}", SECRETS[1].0) });
    assert!(bob.call(None, "echo.say", &text).is_err());
    let trace = |user: &crate::projects::User<'_>| {
        let traced = user.call(None, "plugins.trace", &json!({})).unwrap();
        assert_clean("plugins.trace", &traced.to_string());
        traced["runs"].to_string()
    };
    assert!(trace(&bob).contains("bobs-secret-plan"));
    assert!(
        !trace(&alice).contains("bobs-secret-plan"),
        "{}",
        trace(&alice)
    );
    assert!(trace(&wire.owner()).contains("bobs-secret-plan"));
}

/// A caller that reads a file gets the file. What Dodona notes about the call is another matter.
#[test]
fn the_result_of_a_call_is_unchanged_and_its_record_is_redacted() {
    let wire = Wire::on(Home::new());
    let root = wire.folder().join("project");
    fs::create_dir(&root).unwrap();
    let id = wire.owner().register(&root).unwrap();
    for (n, (secret, core)) in SECRETS.into_iter().enumerate() {
        fs::write(
            root.join(format!("note{n}.md")),
            format!("# Note\n\n{secret}\n"),
        )
        .unwrap();
        let read = json!({ "path": format!("note{n}.md") });
        let result = wire.owner().call(Some(&id), "vault.read", &read).unwrap();
        let shown = result.to_string();
        assert!(shown.contains(core), "{shown}");
    }
    let events = json!({ "type": "tool.call", "limit": 100 });
    let events = wire
        .owner()
        .call(Some(&id), "events.recent", &events)
        .unwrap();
    assert!(events.to_string().contains("note7.md"), "{events}");
    assert_clean("events.recent", &events.to_string());
    let home = wire.server.end();
    for file in ["journal.db", "journal.db-wal", "hub.db", "hub.db-wal"] {
        let bytes = fs::read(home.data().join(file)).unwrap_or_default();
        assert_clean(file, &String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn metrics_have_no_secrets() {
    let wire = Wire::on(Home::new());
    for (secret, _) in SECRETS {
        // As a method, a plugin, a parameter and a stream.
        let _ = wire.owner().call(None, secret, &json!({}));
        let _ = wire
            .owner()
            .call(None, &format!("echo.{secret}"), &json!({}));
        let _ = wire.owner().call(
            None,
            "echo.fail",
            &json!({ "message": secret, "code": secret }),
        );
        let _ = wire
            .owner()
            .call(Some("x"), "hub.stream", &json!({ "stream_id": secret }));
    }
    let (address, owner) = wire.server.door();
    let metrics = crate::wire::get(&address, "/metrics", &owner);
    assert!(metrics.contains("dodona_calls_refused_total"), "{metrics}");
    assert_clean("/metrics", &metrics);
    let token = owner.trim().rsplit(' ').next().unwrap();
    assert!(!metrics.contains(token), "{metrics}");
}

#[test]
fn a_log_at_debug_level_has_no_secrets() {
    let home = Home::new();
    for (secret, _) in SECRETS {
        let mut command = home.command(&["call", "echo.fail", &format!("message={secret}")]);
        let output = command.env("DODONA_LOG", "trace").output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        // The message itself is what the caller asked for, and is on the line that begins so.
        let lines = log.lines().filter(|line| !line.starts_with("error:"));
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("TUlJ")).collect();
        assert_clean("the log", &lines.join("\n"));
    }
}

#[test]
fn error_texts_of_rules_are_seen_by_their_user_alone() {
    let home = Home::new();
    let rules = home.path().join("config/rules");
    home.configure("");
    fs::create_dir_all(&rules).unwrap();
    let rule = "[rule]\nid = \"breaks\"\ntrigger = \"on_tool_call\"\n[condition]\nexpression = \"int(context.call.arguments.path) > 0\"\n[action]\ntype = \"deny\"\nmessage = \"x\"\n";
    fs::write(rules.join("breaks.toml"), rule).unwrap();
    let wire = Wire::on(home);
    let scopes = ["hub:projects", "vault:*", "rules:read"];
    let (alice, bob) = (wire.user("alice", &scopes), wire.user("bob", &["*"]));
    let root = wire.folder().join("bobs");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("bobs-secret-plan.md"), "x\n").unwrap();
    let id = bob.register(&root).unwrap();
    let read = json!({ "path": "bobs-secret-plan.md" });
    let _ = bob.call(Some(&id), "vault.read", &read);
    let seen = bob.call(Some(&id), "rules.list", &json!({})).unwrap();
    assert!(seen.to_string().contains("bobs-secret"), "{seen}");
    for method in ["rules.list", "rules.doctor"] {
        let seen = alice.call(None, method, &json!({}));
        let text = format!("{seen:?}");
        assert!(!text.contains("bobs-secret"), "{method}: {text}");
    }
}
