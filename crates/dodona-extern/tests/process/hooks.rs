//! Hooks of a process, and gates that fail.

use serde_json::json;

use crate::support::{Home, ask, ask_until, assert_active, assert_failed, is_alive, log, until};

const GATE: &str = r#"
[[process.hooks]]
point = "PRE_TOOL_EXECUTE"
name = "guard"
on_error = "closed"
timeout = 1
[[process.hooks]]
point = "POST_TOOL_EXECUTE"
[[process.methods]]
name = "pid"
doc = "Return the id of the process."
"#;

const PROGRAM: &str = r#"
def hook(request):
    call = request["payload"]
    if request["point"] == "POST_TOOL_EXECUTE":
        if call["ending"] == "success" and call["arguments"].get("path") == "result":
            return {"edit": {"result": {"path": "changed"}}}
        return None
    if call["method"] != "target.act": return None
    path = call["arguments"].get("path")
    if path == "secret": return {"edit": {"deny": "not there"}}
    if path == "old": return {"edit": {"modify": {"path": "new"}}}
    if path == "known": return {"edit": {"answer": {"path": "answered"}}}
    if path == "asked": return {"edit": {"ask": "may it?"}}
    if path == "broken": raise ValueError("the guard broke")
    if path == "nonsense": return {"edit": {"destroy": True}}
    if path == "hang": time.sleep(3600)
    if path == "crash": os._exit(7)
    if path == "noted":
        seen = ask("state.get", key="seen") or 0
        return {"effects": [{"type": "set_state", "key": "seen", "value": seen + 1},
                            {"type": "emit_event", "event_type": "custom.noted", "payload": {"seen": seen}}]}
    if path == "writes": ask("state.set", key="seen", value=99)
    if path == "calls": ask("host.call", method="echo.say", params={"text": "x"})
    return {"edit": "allow"}

def call(request): return {"pid": os.getpid()}
serve(hook=hook, call=call)
"#;

fn guarded() -> Home {
    let home = Home::new();
    home.plugin("guard", &["tool_exec"], GATE, PROGRAM);
    home.target();
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_in_python_allows_changes_refuses_asks_and_answers() {
    let home = guarded();
    let hub = home.start().await;
    assert_active(&hub, "guard");
    for (path, expected) in [
        ("plain", "plain"),
        ("old", "new"),
        ("known", "answered"),
        ("result", "changed"),
        ("noted", "noted"),
    ] {
        let answer = ask(&hub, "target.act", json!({ "path": path })).await;
        assert_eq!(answer.unwrap()["path"], expected);
    }
    for (path, words) in [
        ("secret", "not there"),
        ("asked", "policy."),
        // It fails closed.
        ("broken", "the gate of plugin `guard` failed"),
        ("nonsense", "the gate of plugin `guard` failed"),
        ("writes", "the gate of plugin `guard` failed"),
        ("calls", "the gate of plugin `guard` failed"),
    ] {
        let error = ask(&hub, "target.act", json!({ "path": path }))
            .await
            .unwrap_err();
        assert!(error.contains(words), "{path}: {error}");
    }
    let recent = ask(&hub, "plugins.trace", json!({"plugin": "guard"}))
        .await
        .unwrap();
    let runs = recent["runs"].to_string();
    for words in [
        "the guard broke",
        "its answer does not fit",
        "answer with the effect `set_state`",
    ] {
        assert!(runs.contains(words), "{words}: {runs}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_hangs_or_crashes_denies_and_is_started_again() {
    let home = guarded();
    let hub = home.start().await;
    for path in ["hang", "crash"] {
        let pid = ask_until(&hub, "guard.pid", json!({})).await["pid"].clone();
        let denied = ask(&hub, "target.act", json!({ "path": path }))
            .await
            .unwrap_err();
        assert!(
            denied.contains("the gate of plugin `guard` failed"),
            "{denied}"
        );
        until("the process was not ended", || !is_alive(&pid)).await;
        // The next one runs, and lets what is harmless pass.
        let answer = ask_until(&hub, "target.act", json!({"path": "plain"})).await;
        assert_eq!(answer["path"], "plain");
    }
    let lines = log(&hub, "guard").await;
    for words in [
        "it did not answer a request that was cancelled",
        "exit status: 7",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(words)),
            "{words}: {lines:#?}"
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_keeps_failing_rests_and_still_denies() {
    let home = guarded();
    let hub = home.start().await;
    for _ in 0..5 {
        ask(&hub, "target.act", json!({"path": "broken"}))
            .await
            .unwrap_err();
    }
    // It is left alone now: it is not run, and what it guards is denied.
    let denied = ask(&hub, "target.act", json!({"path": "plain"}))
        .await
        .unwrap_err();
    assert!(
        denied.contains("the gate of plugin `guard` failed"),
        "{denied}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_is_not_a_gate_fails_alone() {
    let home = Home::new();
    home.target();
    let declares = "[[process.hooks]]\npoint = \"PRE_TOOL_EXECUTE\"\ntimeout = 0.3\n";
    let program = "def hook(request): time.sleep(3600)\nserve(hook=hook)\n";
    home.plugin("sleepy", &["tool_exec"], declares, program);
    let hub = home.start().await;
    let answer = ask(&hub, "target.act", json!({"path": "x"})).await.unwrap();
    assert_eq!(answer["path"], "x");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_manifest_declares_wrongly_is_told_with_its_line() {
    let home = Home::new();
    let cases = [
        (
            "point",
            &["tool_exec"][..],
            "[[process.hooks]]\npoint = \"PRE_TOOL\"\n",
            "there is no hook point `PRE_TOOL`",
        ),
        (
            "prompt",
            &["tool_exec"],
            "[[process.hooks]]\npoint = \"SYSTEM_PROMPT_EXTEND\"\n",
            "needs the capability `prompt`",
        ),
        (
            "events",
            &[],
            "events = [\"tool.call\"]\n",
            "needs the capability `events:tool.call`",
        ),
        (
            "doc",
            &[],
            "[[process.methods]]\nname = \"x\"\n",
            "missing field `doc`",
        ),
        (
            "schema",
            &[],
            "[[process.methods]]\nname = \"x\"\ndoc = \"X.\"\nparams = { type = \"text\" }\n",
            "must be a JSON Schema",
        ),
        (
            "unknown",
            &[],
            "[[process.methods]]\nname = \"x\"\ndoc = \"X.\"\nstream = true\n",
            "unknown field `stream`",
        ),
        (
            "closed",
            &["turn_lifecycle"],
            "[[process.hooks]]\npoint = \"SESSION_END\"\non_error = \"closed\"\n",
            "`on_error` is for gates",
        ),
    ];
    for (name, uses, declares, _) in cases {
        home.plugin(name, uses, declares, "serve()");
    }
    let hub = home.start().await;
    for (name, _, _, words) in cases {
        assert_failed(&hub, name, words);
    }
    assert_failed(&hub, "point", "manifest.toml:13");
    hub.stop().await;
}
