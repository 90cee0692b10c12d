//! Hooks of scripts at points that the hub fires by itself. The others are in a real run of the agent,
//! in the tests of `dodona-testkit`.

use dodona_proto::PluginState;
use serde_json::json;

use crate::support::{Home, ask, assert_active, log, status};

const TARGET: &str = r#"
    dodona.method { name = "act", doc = "Acts.", tool = true, read_only = true,
        params = { type = "object", properties = { path = { type = "string" } } },
        run = function(_, p) return { path = p.path } end }
"#;

const GUARD: &str = r#"
    local d = dodona
    d.hook("PRE_TOOL_EXECUTE", { priority = 10, on_error = "closed", name = "guard" }, function(call)
        local path = call.arguments.path
        if path == "secret" then return d.deny("not there") end
        if path == "old" then return d.modify({ path = "new" }) end
        if path == "known" then return d.answer({ path = "answered" }) end
        if path == "asked" then return d.ask("may it?") end
        if path == "broken" then error("the guard broke") end
        if path == "counted" then
            local n = d.state.get("seen", 0)
            return { effects = { { type = "set_state", key = "seen", value = n + 1 } } }
        end
        if path == "writes" then d.state.set("seen", 99) end
        if path == "calls" then return { edit = "nonsense" } end
    end)
    d.hook("POST_TOOL_EXECUTE", function(ended)
        if ended.ending == "success" and ended.arguments.path == "result" then
            return d.edit({ result = { path = "changed" } })
        end
        if ended.ending == "denied" then d.log.warning("denied", ended.method) end
    end)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_in_a_script_allows_changes_refuses_asks_and_answers() {
    let home = Home::new();
    home.plugin("target", TARGET);
    home.granted("guard", &["tool_exec"], GUARD);
    let hub = home.start().await;
    assert_active(&hub, "guard");
    for (path, expected) in [
        ("plain", "plain"),
        ("old", "new"),
        ("known", "answered"),
        ("result", "changed"),
        ("counted", "counted"),
    ] {
        let answer = ask(&hub, "target.act", json!({ "path": path })).await;
        assert_eq!(answer.unwrap()["path"], expected);
    }
    for (path, words) in [
        ("secret", "not there"),
        ("asked", "policy."),
        // It fails closed.
        ("broken", "the gate of plugin `guard` failed"),
        ("writes", "the gate of plugin `guard` failed"),
        ("calls", "the gate of plugin `guard` failed"),
    ] {
        let error = ask(&hub, "target.act", json!({ "path": path }))
            .await
            .unwrap_err();
        assert!(error.contains(words), "{path}: {error}");
    }
    ask(&hub, "target.act", json!({"path": "counted"}))
        .await
        .unwrap();
    let lines = log(&hub, "guard").await;
    let told = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(
        told("error guard: main.luau:9: the guard broke"),
        "{lines:#?}"
    );
    assert!(told("answer with the effect `set_state`"), "{lines:#?}");
    assert!(
        told("warning POST_TOOL_EXECUTE: denied target.act"),
        "{lines:#?}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_always_throws_is_left_alone_and_harms_nobody() {
    let home = Home::new();
    home.plugin("target", TARGET);
    let throws = "dodona.hook('PRE_TOOL_EXECUTE', function() error('always') end)";
    home.granted("thrower", &["tool_exec"], throws);
    let hub = home.start().await;
    for _ in 0..12 {
        let answer = ask(&hub, "target.act", json!({"path": "x"})).await;
        assert_eq!(answer.unwrap()["path"], "x");
    }
    let lines = log(&hub, "thrower").await;
    assert_eq!(
        lines.len(),
        5,
        "after five failures in a row it is left alone"
    );
    assert_eq!(status(&hub, "thrower").state, PluginState::Active);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_outside_of_its_capabilities_is_refused() {
    let home = Home::new();
    let script = "dodona.hook('SYSTEM_PROMPT_EXTEND', function() return dodona.append('x') end)";
    home.granted("sneaky", &["tool_exec"], script);
    let hub = home.start().await;
    crate::support::assert_failed(&hub, "sneaky", "without the capability `prompt`");
    hub.stop().await;
}
