//! Plugins in Luau in a real run: every hook point of a question, from a script.

use std::collections::BTreeSet;
use std::fs;

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::approvals::told;
use crate::harness::Home;
use crate::model::Model;
use crate::serve::Server;
use crate::wire::post;

/// Each hook says in an event that it was asked, beside what it does.
const SCRIPT: &str = r#"
local d = dodona
local function seen(point, edit)
    return {
        edit = edit,
        effects = { { type = "emit_event", event_type = "custom.hook", payload = { point = point } } },
    }
end
for _, point in { "SESSION_RESOLVED", "QUERY_RECEIVED", "TURN_COMPLETED", "SESSION_END" } do
    d.hook(point, function() return seen(point) end)
end
d.hook("SYSTEM_PROMPT_EXTEND", function() return seen("SYSTEM_PROMPT_EXTEND", { append = "Be brief." }) end)
d.hook("PRE_PRELOAD", function(p) return seen("PRE_PRELOAD", { requests = p.requests }) end)
d.hook("POST_PRELOAD", function(p) return seen("POST_PRELOAD", { passages = p.passages }) end)
d.hook("PRE_LLM_CALL", function() return seen("PRE_LLM_CALL", { options = { temperature = 0 } }) end)
d.hook("POST_LLM_RESPONSE", function() return seen("POST_LLM_RESPONSE") end)
d.hook("PRE_TOOL_EXECUTE", function() return seen("PRE_TOOL_EXECUTE", "allow") end)
d.hook("POST_TOOL_EXECUTE", function(e) return seen("POST_TOOL_EXECUTE", if e.ending == "success" then { result = e.result } else nil) end)
d.hook("PRE_COMPACT", function() return seen("PRE_COMPACT", { pin = { "the lighthouse" } }) end)
d.hook("POST_COMPACT", function() return seen("POST_COMPACT") end)
d.hook("TOOL_REGISTRY_BUILD", function() return d.edit({ { method = "watcher.blink", description = "Blinks." } }) end)
d.hook("DAEMON_SERVER_REGISTER", function() return d.edit({ { path = "blink", method = "watcher.blink" } }) end)
d.method { name = "blink", doc = "Blinks.", tool = true, read_only = true, agents = { "nobody" },
    run = function() return { blinked = true } end }
"#;

const USES: &str = r#"["turn_lifecycle", "prompt", "preload", "llm_io", "tool_exec", "tool_registry", "daemon_server"]"#;

/// Every hook and a method, as a plugin of somebody's.
pub(crate) fn watcher() -> (String, &'static str) {
    let manifest = format!(
        "[plugin]\nid = \"watcher\"\nversion = \"0.1.0\"\n[capabilities]\nuses = {USES}\n[script]\nmain = \"main.luau\"\n"
    );
    (manifest, SCRIPT)
}

fn plugin(home: &Home) {
    home.configure("");
    let dir = home.path().join("config/plugins/watcher");
    fs::create_dir_all(&dir).unwrap();
    let (manifest, script) = watcher();
    fs::write(dir.join("manifest.toml"), manifest).unwrap();
    fs::write(dir.join("main.luau"), script).unwrap();
    let roster = format!(
        "[plugin.watcher]\nenabled = true\nmodule = \"dir:plugins/watcher\"\ncapabilities = {USES}\n"
    );
    fs::write(home.path().join("config/plugins.toml"), roster).unwrap();
}

const EVENTS: [&str; 6] = [
    "events",
    "--type",
    "custom.hook",
    "--limit",
    "1000",
    "--json",
];

/// The points that scripts were asked at.
fn points(events: &Value) -> BTreeSet<String> {
    let events = events["events"].as_array().unwrap().iter();
    let point = |event: &Value| event["payload"]["point"].as_str().unwrap().to_owned();
    events.map(point).collect()
}

#[test]
fn a_question_comes_by_the_hooks_of_a_script() {
    let home = Home::new();
    plugin(&home);
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join(".dodona")).unwrap();
    let note = "# Lighthouse\n\nThe lighthouse blinks every twelve seconds.\n";
    fs::write(project.path().join("lighthouse.md"), note).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        home.outcome(
            arguments,
            command.current_dir(project.path()).output().unwrap(),
        )
    };
    let asked = run(&["ask", "How often does the lighthouse blink?"]);
    assert_eq!(asked.code, Some(0), "{}", asked.shown());
    let events = run(&EVENTS);
    let points = points(&serde_json::from_str(&events.stdout).unwrap());
    for point in [
        "SESSION_RESOLVED",
        "QUERY_RECEIVED",
        "SYSTEM_PROMPT_EXTEND",
        "PRE_PRELOAD",
        "POST_PRELOAD",
        "PRE_LLM_CALL",
        "POST_LLM_RESPONSE",
        "PRE_TOOL_EXECUTE",
        "POST_TOOL_EXECUTE",
        "TURN_COMPLETED",
    ] {
        assert!(points.contains(point), "{point} is not among {points:?}");
    }
    let called = run(&["call", "watcher.blink", "--json"]);
    assert!(called.stdout.contains("blinked"), "{}", called.shown());
    let listed = run(&["plugins", "list"]);
    assert!(!listed.stdout.contains("failed"), "{}", listed.shown());
}

#[test]
fn a_conversation_that_is_shortened_and_closed_comes_by_the_hooks_of_a_script() {
    let home = Home::new();
    plugin(&home);
    let model = Model::of(&home);
    let file = home.path().join("config/config.toml");
    let settings = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        settings.replace("preload = 0", "preload = 0\nkeep_turns = 1"),
    )
    .unwrap();
    let server = Server::on(home);
    for number in 1..=4 {
        let long = format!("Lamp {number} is of the old kind, and nobody has mended it since. ");
        model.says(Reply::text(&long.repeat(60)));
        let asked = server.home.run(&["ask", "Tell me about the lamps."]);
        assert_eq!(asked.code, Some(0), "{}", asked.shown());
    }
    let shorter = server.json(&["call", "--project", ".", "agent.compact", "--json"]);
    assert_eq!(shorter["compacted"], true, "{shorter}");
    let id = shorter["context_id"].as_str().unwrap();
    let closed = server.home.run(&["contexts", "close", id]);
    assert_eq!(closed.code, Some(0), "{}", closed.shown());
    let points = points(&server.json(&EVENTS));
    for point in ["PRE_COMPACT", "POST_COMPACT", "SESSION_END"] {
        assert!(points.contains(point), "{point} is not among {points:?}");
    }
    // What the script pinned is in what a model is shown from now on.
    let shown = server.json(&[
        "call",
        "--project",
        ".",
        "agent.show",
        &format!("context_id={id}"),
        "--json",
    ]);
    assert!(shown.to_string().contains("the lighthouse"), "{shown}");
}

#[test]
fn a_method_of_a_script_is_reached_over_http_by_command_and_by_the_model() {
    let home = Home::new();
    plugin(&home);
    let model = Model::of(&home);
    let server = Server::on(home);
    // The model: it is offered the tool by a hook of the script, for no agent has it by itself.
    model.says(Reply::stream().tool_call("a", "watcher_blink", &["{}"]));
    model.says(Reply::text("It blinked."));
    let asked = server.home.run(&["ask", "Blink!"]);
    assert!(asked.stdout.starts_with("It blinked."), "{}", asked.shown());
    let offered = model.requests()[0]["tools"].to_string();
    assert!(offered.contains("watcher_blink"), "{offered}");
    assert_eq!(told(&model)["text"], "blinked: true");
    // A command.
    let called = server.json(&["call", "watcher.blink", "--json"]);
    assert_eq!(called["blinked"], true);
    // HTTP: as a method, and at the route that the script adds.
    let (address, token) = server.door();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "watcher.blink", "params": {} });
    let answer = post(&address, "/rpc", &token, &request);
    assert_eq!(answer["result"]["blinked"], true, "{answer}");
    let answer = post(&address, "/plugins/watcher/blink", &token, &json!({}));
    assert_eq!(answer["blinked"], true, "{answer}");
    let refused = post(&address, "/plugins/watcher/blink", "", &json!({}));
    assert!(refused["blinked"].is_null(), "{refused}");
}

/// The blocks of code of a page in one language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = page.split(begin.as_str()).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_example_of_the_how_to_passes_its_tests_and_does_what_it_says() {
    let page = include_str!("../../../../docs/how-to/write-a-luau-plugin.md");
    let (toml, lua) = (blocks(page, "toml"), blocks(page, "lua"));
    let ([manifest, tests], [script]) = (toml.as_slice(), lua.as_slice()) else {
        panic!("{} and {} blocks", toml.len(), lua.len());
    };
    let home = Home::new();
    home.configure("");
    let dir = home.path().join("config/plugins/glossary");
    fs::create_dir_all(dir.join("tests")).unwrap();
    for (file, text) in [
        ("manifest.toml", manifest),
        ("main.luau", script),
        ("tests/main.toml", tests),
    ] {
        fs::write(dir.join(file), text).unwrap();
    }
    for command in ["test", "check"] {
        let outcome = home.run(&["plugins", command, "glossary"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
    }
    let granted = home.run(&["plugins", "grant", "glossary", "call:vault", "tool_exec"]);
    assert_eq!(granted.code, Some(0), "{}", granted.shown());
    let project = tempfile::tempdir().unwrap();
    fs::create_dir_all(project.path().join(".dodona")).unwrap();
    fs::create_dir(project.path().join("glossary")).unwrap();
    let note = "# Journal\n\nThe journal is the log of everything.\n";
    fs::write(project.path().join("glossary/journal.md"), note).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        let output = command.current_dir(project.path()).output().unwrap();
        home.outcome(arguments, output)
    };
    assert_eq!(run(&["index"]).code, Some(0));
    let defined = run(&["call", "glossary.define", "term=journal", "--json"]);
    assert!(
        defined.stdout.contains("glossary/journal.md"),
        "{}",
        defined.shown()
    );
    // Its gate asks, and no person is available to approve it.
    let deleted = run(&["call", "vault.delete", "path=glossary/journal.md"]);
    assert_eq!(deleted.code, Some(3), "{}", deleted.shown());
    assert!(project.path().join("glossary/journal.md").exists());
}
