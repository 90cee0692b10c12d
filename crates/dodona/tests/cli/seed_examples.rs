//! The example files of the first design documents, unchanged, in the real program: rules,
//! a plugin's manifest and the roster. They are in `tests/fixtures/seed`.
//!
//! `docs/reference/seeds.md` compares the documents with what is here. The wire examples are in
//! the tests of `dodona-server`.

use std::fs;
use std::path::{Path, PathBuf};

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::harness::Home;
use crate::model::Model;

/// Turns of the query; the rule `milestone-reached` waits for the tenth.
const TURNS: usize = 10;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seed")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Puts a file or directory of the examples into the user's configuration.
fn install(home: &Home, name: &str) {
    let (from, to) = (fixture().join(name), home.path().join("config").join(name));
    match from.is_dir() {
        true => copy(&from, &to),
        false => drop(fs::copy(from, to).unwrap()),
    }
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let outcome = home.run(&[&["--project", "project"], arguments, &["--json"]].concat());
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.shown()))
}

fn project(home: &Home) {
    let root = home.path().with_file_name("project");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("login.md"), "# Login\n\nLogin issues a token.\n").unwrap();
}

/// Whether a text has these words with two digits in place of `##`.
fn has(text: &str, pattern: &str) -> bool {
    let (before, after) = pattern.split_once("##").unwrap();
    text.match_indices(before).any(|(at, _)| {
        let rest = &text[at + before.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits == 2 && rest[2..].starts_with(after)
    })
}

#[test]
fn every_example_rule_does_what_it_says_in_a_real_query() {
    let home = Home::new();
    let model = Model::of(&home);
    install(&home, "rules");
    install(&home, "plugins");
    project(&home);
    let checked = json(&home, &["rules", "check"]);
    // `core` of a plugin's rule does not count: a plugin cannot add rules that nobody can disable.
    let problems = checked["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{checked:#}");
    assert_eq!(problems[0]["severity"], "warning");
    assert!(problems[0]["message"].as_str().unwrap().contains("`core`"));

    for turn in 1..TURNS {
        let arguments = json!({ "query": format!("login {turn}"), "limit": 1 }).to_string();
        let id = format!("call-{turn}");
        // Text of the model is never cut, unlike questions and results.
        let thought = "word ".repeat(1_000);
        let reply = Reply::stream().add_text(&thought);
        model.says(reply.tool_call(&id, "vault_search", &[&arguments]));
    }
    model.says(Reply::text("A token."));
    // About a third of the default budget of 16 000 tokens; nine turns make it more than 80 %.
    let question = format!("What does login issue?{}", " word".repeat(5_000));
    let asked = home.run(&["--project", "project", "ask", &question]);
    assert_eq!(asked.code, Some(0), "{}", asked.shown());
    let requests = model.requests();
    assert_eq!(requests.len(), TURNS);
    let last = requests[TURNS - 1]["messages"].to_string();
    for notice in [
        "- [warning] Token usage at ##%",
        "Token budget at ##%. Consider wrapping up or summarizing.",
    ] {
        assert!(has(&last, notice), "{notice}\n{last}");
    }
    for notice in [
        "High activity detected",
        "Research phase complete. Consider synthesis.",
    ] {
        assert!(last.contains(notice), "{notice}\n{last}");
    }
    let first = requests[0]["messages"].to_string();
    assert!(!first.contains("Token usage") && !first.contains("High activity"));

    let events = json(&home, &["events"]);
    let emitted: Vec<(&Value, &Value)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (&event["type"], &event["payload"]))
        .collect();
    let payload = json!({ "milestone": "turn_10", "user": "local" });
    assert_eq!(emitted, [(&json!("custom.milestone"), &payload)]);

    let log = json(&home, &["rules", "log", "track-searches"]);
    let newest = &log["executions"][0]["decisions"][0];
    assert_eq!(
        (&newest["key"], &newest["value"]),
        (&json!("last_search_turn"), &json!(TURNS - 1)),
        "{log:#}"
    );
}

#[test]
fn the_example_manifest_is_a_plugin_with_its_settings() {
    let home = Home::new();
    home.configure("");
    install(&home, "plugins");
    project(&home);
    let info = json(&home, &["plugins", "info", "research-assistant"]);
    assert_eq!(info["state"], "active", "{info:#}");
    assert_eq!(info["version"], "1.0.0");
    assert_eq!(info["display_name"], "Research Assistant");
    assert_eq!(
        info["description"],
        "Enhanced research workflow with multi-step guidance"
    );
    assert_eq!(info["requires"], json!(["vault_search", "web_search"]));
    let declared = |name: &str| {
        let setting = &info["settings"][name];
        ["type", "default", "min", "max", "description", "value"].map(|field| &setting[field])
    };
    assert_eq!(
        declared("max_sources"),
        [
            &json!("integer"),
            &json!(10),
            &json!(1.0),
            &json!(50.0),
            &json!("Maximum sources to gather before synthesizing"),
            &json!(10),
        ]
    );
    assert_eq!(
        declared("auto_summarize"),
        [
            &json!("boolean"),
            &json!(true),
            &Value::Null,
            &Value::Null,
            &json!("Automatically summarize large result sets"),
            &json!(true),
        ]
    );
    let set = |value: &str| {
        let command = ["plugins", "set", "research-assistant", "max_sources", value];
        home.run(&command)
    };
    assert_eq!(set("50").code, Some(0));
    let refused = set("51");
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("must be at most 50"),
        "{}",
        refused.shown()
    );
}

#[test]
fn the_example_roster_is_read_and_its_python_modules_are_named_as_what_is_wrong() {
    let home = Home::new();
    home.configure("");
    install(&home, "plugins.toml");
    let listed = home.run(&["plugins", "list"]);
    for (line, module) in [
        (3, "asky.plugins.persona_creator.plugin"),
        (11, "asky.plugins.gui_server.plugin"),
    ] {
        let reason = format!(
            "plugins.toml:{line}: `{module}` is not a valid module; write `builtin:NAME`, `dir:PATH` or `mcp:SERVER`"
        );
        assert!(listed.stdout.contains(&reason), "{}", listed.shown());
    }
    // The same file with modules that exist here: everything else in it counts as it is.
    let text = fs::read_to_string(fixture().join("plugins.toml")).unwrap();
    let text = text
        .replace("asky.plugins.persona_creator.plugin", "dir:persona")
        .replace("asky.plugins.gui_server.plugin", "builtin:gui");
    let config = home.path().join("config");
    fs::write(config.join("plugins.toml"), text).unwrap();
    fs::create_dir_all(config.join("persona")).unwrap();
    let manifest = "[plugin]\nid = \"manual_persona_creator\"\nversion = \"0.1.0\"\n\
        [capabilities]\nuses = [\"tool_registry\", \"prompt\", \"preload\"]\n\
        [settings.tone]\ntype = \"string\"\ndefault = \"plain\"\n";
    fs::write(config.join("persona/manifest.toml"), manifest).unwrap();
    fs::create_dir_all(config.join("plugins")).unwrap();
    let settings = config.join("plugins/manual_persona_creator.toml");
    fs::write(settings, "tone = \"warm\"\n").unwrap();
    project(&home);
    let info = json(&home, &["plugins", "info", "manual_persona_creator"]);
    assert_eq!(info["state"], "active", "{info:#}");
    assert_eq!(
        info["granted"],
        json!(["tool_registry", "prompt", "preload"])
    );
    assert_eq!(info["settings"]["tone"]["value"], "warm", "{info:#}");
    let off = json(&home, &["plugins", "info", "gui_server"]);
    assert_eq!(off["state"], "disabled", "{off:#}");
}
