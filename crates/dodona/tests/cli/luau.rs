//! Plugins in Luau in a real run: every hook point of a question, from a script.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::harness::Home;

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

fn plugin(home: &Home) {
    home.configure("");
    let dir = home.path().join("config/plugins/watcher");
    fs::create_dir_all(&dir).unwrap();
    let manifest = format!(
        "[plugin]\nid = \"watcher\"\nversion = \"0.1.0\"\n[capabilities]\nuses = {USES}\n[script]\nmain = \"main.luau\"\n"
    );
    fs::write(dir.join("manifest.toml"), manifest).unwrap();
    fs::write(dir.join("main.luau"), SCRIPT).unwrap();
    let roster = format!(
        "[plugin.watcher]\nenabled = true\nmodule = \"dir:plugins/watcher\"\ncapabilities = {USES}\n"
    );
    fs::write(home.path().join("config/plugins.toml"), roster).unwrap();
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
    let events = run(&[
        "events",
        "--type",
        "custom.hook",
        "--limit",
        "1000",
        "--json",
    ]);
    let events: Value = serde_json::from_str(&events.stdout).unwrap();
    let points: BTreeSet<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["payload"]["point"].as_str().unwrap())
        .collect();
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
