//! Scripts that mean harm: each fails alone, within its limits, and the server goes on.

use std::time::Duration;

use dodona_hub::{PluginHub, Request};
use dodona_testkit::principal;
use serde_json::json;

use crate::support::{Home, ask, assert_failed};

const HOSTILE: &str = r#"
    local function method(name, run)
        dodona.method { name = name, doc = "Means harm.", read_only = true, run = run,
            params = { type = "object", additionalProperties = true } }
    end
    method("loop", function() while true do end end)
    method("swallow", function() while true do pcall(function() while true do end end) end end)
    method("memory", function() local t = {} while true do t[#t + 1] = string.rep("x", 65536) .. #t end end)
    method("storm", function()
        local all = {}
        while true do
            local co = coroutine.create(function() coroutine.yield() end)
            coroutine.resume(co)
            all[#all + 1] = co
        end
    end)
    method("huge", function() return { text = string.rep("x", 5 * 1024 * 1024) } end)
    method("deep", function()
        local t = {}
        for _ = 1, 100000 do t = { t } end
        return { t = t }
    end)
    method("itself", function() local t = {} t.t = t return t end)
    method("pattern", function()
        return { found = (string.rep("a", 50000) .. "b"):match(string.rep("a*", 50) .. "c") }
    end)
    method("stack", function() local function f() return 1 + f() end return { n = f() } end)
    method("calls", function(ctx) while true do pcall(ctx.call, "echo.say", { text = "x" }) end end)
    method("recurse", function(ctx) return ctx.call("hostile.recurse") end)
    method("escape", function()
        return {
            os = tostring(os), io = tostring(io), debug = tostring(debug), load = tostring(loadstring),
            fenv = tostring(getfenv), g = tostring(_G), dodona = tostring(pcall(function() dodona.method = nil end)),
            frozen = tostring(pcall(function() dodona.state.get = nil end)),
            text = tostring(pcall(function() string.rep = nil end)),
        }
    end)
    method("fine", function() return { fine = true } end)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_methods_reach_their_limits_and_nothing_else() {
    let home = Home::new();
    home.granted("hostile", &["call:echo"], HOSTILE);
    let hub = home.start().await;
    for (verb, words) in [
        ("loop", "limit."),
        ("swallow", "limit."),
        ("memory", "limit.size"),
        ("storm", "limit."),
        ("huge", "too large"),
        ("deep", "nested too deeply"),
        ("itself", "nested too deeply"),
        ("pattern", "limit."),
        ("stack", "stack overflow"),
        ("recurse", "limit.depth"),
    ] {
        let method = format!("hostile.{verb}");
        let error = ask(&hub, &method, json!({})).await.unwrap_err();
        assert!(error.contains(words), "{verb}: {error}");
        let fine = ask(&hub, "hostile.fine", json!({})).await;
        assert_eq!(fine.unwrap(), json!({"fine": true}), "after {verb}");
    }
    let escape = ask(&hub, "hostile.escape", json!({})).await.unwrap();
    for (what, found) in escape.as_object().unwrap() {
        assert!(
            matches!(found.as_str(), Some("nil" | "false")),
            "{what}: {found}"
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_calls_without_end_ends_at_its_deadline_and_with_its_caller() {
    let home = Home::new();
    home.granted("hostile", &["call:echo"], HOSTILE);
    let hub = home.start().await;
    let mut request = Request::new(principal("ada"), "hostile.calls", json!({}));
    request.timeout = Some(Duration::from_millis(300));
    let error = PluginHub::call(&hub, request).await.unwrap_err();
    assert_eq!(error.code.as_str(), "limit.deadline");
    let running = tokio::spawn({
        let hub = PluginHub::clone(&hub);
        async move {
            hub.call(Request::new(principal("ada"), "hostile.loop", json!({})))
                .await
        }
    });
    while hub.health().calls == 0 {
        tokio::task::yield_now().await;
    }
    let cancelled = ask(&hub, "hub.cancel", json!({"path": "hostile"})).await;
    assert!(cancelled.is_ok(), "{cancelled:?}");
    let ended = running.await.unwrap().unwrap_err();
    assert_eq!(ended.code.as_str(), "call.cancelled");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_means_harm_while_it_is_loaded_is_not_activated() {
    let home = Home::new();
    for (name, script) in [
        ("loops", "while true do end"),
        (
            "swallows",
            "while true do pcall(function() while true do end end) end",
        ),
        (
            "eats",
            "local t = {} while true do t[#t + 1] = string.rep('x', 65536) .. #t end",
        ),
        (
            "declares",
            "for i = 1, 1000 do dodona.method { name = 'm' .. i, doc = 'M.', run = print } end",
        ),
        (
            "shouts",
            "for i = 1, 100000 do print(string.rep('x', 1000)) end error('done')",
        ),
    ] {
        home.plugin(name, script);
    }
    home.plugin(
        "fine",
        "dodona.method { name = 'x', doc = 'X.', run = function() end }",
    );
    let hub = home.start().await;
    assert_failed(&hub, "loops", "may");
    assert_failed(&hub, "swallows", "may");
    assert_failed(&hub, "eats", "memory");
    assert_failed(&hub, "declares", "at most 256 things");
    assert_failed(&hub, "shouts", "main.luau");
    assert_eq!(ask(&hub, "fine.x", json!({})).await.unwrap(), json!({}));
    let lines = crate::support::log(&hub, "shouts").await;
    assert_eq!(lines.len(), 1000, "a log keeps its last lines");
    hub.stop().await;
}

/// More calls at once than a plugin may have: the rest is told so, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_has_so_many_calls_at_once_and_no_more() {
    let home = Home::new();
    let script = r#"dodona.method { name = "wait", doc = "Waits.", read_only = true,
        run = function(ctx) return ctx.call("echo.slow", { ms = 600000 }) end }"#;
    home.granted("waiter", &["call:echo"], script);
    let hub = home.start().await;
    let waiting: Vec<_> = (0..80)
        .map(|_| {
            let hub = PluginHub::clone(&hub);
            tokio::spawn(async move {
                hub.call(Request::new(principal("ada"), "waiter.wait", json!({})))
                    .await
            })
        })
        .collect();
    while waiting.iter().filter(|call| call.is_finished()).count() < 16 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ask(&hub, "hub.cancel", json!({"path": "waiter"}))
        .await
        .unwrap();
    let mut refused = 0;
    for call in waiting {
        let error = call.await.unwrap().unwrap_err();
        refused += usize::from(error.code.as_str() == "limit.concurrency");
    }
    assert_eq!(refused, 16);
    hub.stop().await;
}
