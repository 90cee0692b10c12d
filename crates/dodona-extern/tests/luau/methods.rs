//! Methods of scripts.

use dodona_testkit::TestHub;
use serde_json::{Value, json};

use crate::support::{Home, ask, assert_active, assert_failed, log};

const GREETER: &str = r#"
local d = dodona
d.method {
    name = "greet",
    doc = "Greets somebody by name.",
    params = { type = "object", properties = { name = { type = "string" } }, required = { "name" } },
    result = { type = "object", title = "Greeting", properties = { text = { type = "string" } }, required = { "text" } },
    read_only = true,
    tool = true,
    run = function(ctx, p)
        d.log.info("greeting", p.name)
        return { text = `{d.settings.word}, {p.name}!` }
    end,
}
"#;

const GREETING: &str = "[settings.word]\ntype = \"string\"\ndefault = \"Hello\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_method_of_a_script_is_called_like_any_other() {
    let home = Home::new();
    home.plugin_with("greeter", GREETING, GREETER);
    let hub = home.start().await;
    assert_active(&hub, "greeter");
    let said = ask(&hub, "greeter.greet", json!({"name": "Ada"})).await;
    assert_eq!(said.unwrap(), json!({"text": "Hello, Ada!"}));
    let descriptor = hub.method("greeter.greet").unwrap();
    assert_eq!(descriptor.description, "Greets somebody by name.");
    assert_eq!(descriptor.scope.as_ref().unwrap().as_str(), "greeter:use");
    assert!(descriptor.tool.is_some());
    assert_eq!(descriptor.params["additionalProperties"], json!(false));
    let set = json!({"plugin": "greeter", "setting": "word", "value": "Good day"});
    ask(&hub, "plugins.set", set).await.unwrap();
    let said = ask(&hub, "greeter.greet", json!({"name": "Ada"})).await;
    assert_eq!(said.unwrap()["text"], "Good day, Ada!");
    let other = hub
        .call("bob", "greeter.greet", json!({"name": "Bob"}))
        .await;
    assert_eq!(other.unwrap()["text"], "Hello, Bob!");
    let lines = log(&hub, "greeter").await;
    assert_eq!(lines[0], "info greet: greeting Ada");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_results_are_held_to_their_schemas() {
    let home = Home::new();
    let script = r#"
        dodona.method {
            name = "number", doc = "Answers with what it was given.",
            params = { type = "object", properties = { n = { type = "integer" } } },
            result = { type = "object", properties = { n = { type = "integer" } }, required = { "n" } },
            read_only = true,
            run = function(_, p) return { n = if p.n == 7 then "seven" else p.n } end,
        }"#;
    home.plugin("strict", script);
    let hub = home.start().await;
    assert_eq!(
        ask(&hub, "strict.number", json!({"n": 3})).await.unwrap()["n"],
        3
    );
    for (params, words) in [
        (json!({"n": "x"}), "rpc.invalid_params"),
        (json!({"m": 1}), "rpc.invalid_params"),
        (json!({"n": 7}), "does not fit its schema at `/n`"),
        (json!({}), "does not fit its schema"),
    ] {
        let error = ask(&hub, "strict.number", params).await.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    hub.stop().await;
}

/// `caller` calls `echo`, and `other`, which it is not granted.
const CALLER: &str = r#"
    local function method(name, run)
        dodona.method { name = name, doc = "For a test.", read_only = true, run = run,
            params = { type = "object", additionalProperties = true } }
    end
    method("allowed", function(ctx, p) return ctx.call("echo.say", { text = p.text }) end)
    method("denied", function(ctx) return ctx.call("hub.health") end)
    method("caught", function(ctx)
        local ok, why = pcall(ctx.call, "hub.health")
        return { ok = ok, why = why }
    end)
    method("wrong", function(ctx)
        return ctx.call("echo.say", { words = 1 })
    end)
    method("own", function(ctx, p) return ctx.call("caller.allowed", { text = p.text }) end)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_script_calls_only_what_it_uses_and_is_granted() {
    let home = Home::new();
    home.granted("caller", &["call:echo"], CALLER);
    let hub = home.start().await;
    assert_active(&hub, "caller");
    let text = json!({"text": "hi"});
    assert_eq!(
        ask(&hub, "caller.allowed", text.clone()).await.unwrap(),
        text
    );
    assert_eq!(ask(&hub, "caller.own", text.clone()).await.unwrap(), text);
    let error = ask(&hub, "caller.denied", json!({})).await.unwrap_err();
    assert!(error.starts_with("auth.forbidden"), "{error}");
    assert!(error.contains("main.luau:7"), "{error}");
    let caught = ask(&hub, "caller.caught", json!({})).await.unwrap();
    assert_eq!(caught["ok"], false);
    assert!(
        caught["why"].as_str().unwrap().contains("auth.forbidden"),
        "{caught}"
    );
    let error = ask(&hub, "caller.wrong", json!({})).await.unwrap_err();
    assert!(error.starts_with("rpc.invalid_params"), "{error}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_uses_and_is_not_granted_keeps_it_from_being_activated() {
    let home = Home::new();
    home.plugin_with("caller", "[capabilities]\nuses = [\"call:echo\"]\n", CALLER);
    let hub = home.start().await;
    assert_failed(&hub, "caller", "dodona plugins grant caller call:echo");
    let grant = json!({"plugin": "caller", "capabilities": ["call:echo"]});
    ask(&hub, "plugins.grant", grant).await.unwrap();
    assert_active(&hub, "caller");
    hub.stop().await;
}

/// A plugin that may call nothing is called by one that may: rights only shrink on the way down.
#[tokio::test(flavor = "multi_thread")]
async fn rights_do_not_grow_along_the_path() {
    let home = Home::new();
    let inner = r#"dodona.method { name = "look", doc = "Looks.", read_only = true,
        run = function(ctx) return ctx.call("echo.say", { text = "x" }) end }"#;
    let outer = r#"dodona.method { name = "look", doc = "Has another look.", read_only = true,
        run = function(ctx) return ctx.call("inner.look") end }"#;
    home.granted("inner", &["call:echo"], inner);
    home.granted("outer", &["call:inner"], outer);
    let hub = home.start().await;
    assert!(ask(&hub, "inner.look", json!({})).await.is_ok());
    let error = ask(&hub, "outer.look", json!({})).await.unwrap_err();
    assert!(error.starts_with("auth.forbidden"), "{error}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn state_lasts_and_is_each_users_own() {
    let home = Home::new();
    let script = r#"
        local s = dodona.state
        dodona.method { name = "count", doc = "Counts its calls.",
            run = function()
                local n = s.get("n", 0) + 1
                s.set("n", n)
                return { n = n, all = s.list("") }
            end }
        dodona.method { name = "forget", doc = "Forgets.", run = function() return { was = s.delete("n") } end }
    "#;
    home.plugin("counter", script);
    let hub = home.start().await;
    ask(&hub, "counter.count", json!({})).await.unwrap();
    let second = ask(&hub, "counter.count", json!({})).await.unwrap();
    assert_eq!(second, json!({"n": 2, "all": {"n": 2}}));
    let other = hub.call("bob", "counter.count", json!({})).await.unwrap();
    assert_eq!(other["n"], 1);
    let hub = hub.restart().await;
    assert_eq!(ask(&hub, "counter.count", json!({})).await.unwrap()["n"], 3);
    assert_eq!(
        ask(&hub, "counter.forget", json!({})).await.unwrap()["was"],
        true
    );
    assert_eq!(ask(&hub, "counter.count", json!({})).await.unwrap()["n"], 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_call_leaves_in_the_script_is_seen_by_the_next() {
    let home = Home::new();
    let script = r#"
        local seen = 0
        shared = shared or 0
        dodona.method { name = "peek", doc = "Counts in vain.", read_only = true,
            run = function() seen += 1 shared += 1 return { seen = seen, shared = shared } end }"#;
    home.plugin("forgetful", script);
    let hub = home.start().await;
    for _ in 0..3 {
        let peeked = ask(&hub, "forgetful.peek", json!({})).await.unwrap();
        assert_eq!(peeked, json!({"seen": 1, "shared": 1}));
    }
    hub.stop().await;
}

async fn items(hub: &TestHub, method: &str, params: Value) -> Vec<Value> {
    let stream = hub.open("ada", method, params).await.unwrap();
    let items = stream.collect().await.unwrap();
    let items = items
        .into_iter()
        .map(|item| serde_json::to_value(item).unwrap());
    items.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_method_emits_items_as_they_come() {
    let home = Home::new();
    let script = r#"
        dodona.method { name = "count", doc = "Counts.", streaming = true, read_only = true,
            params = { type = "object", properties = { to = { type = "integer" } } },
            result = { type = "object", title = "Tick", properties = { n = { type = "integer" } } },
            run = function(ctx, p)
                ctx.progress("counting", 50)
                for n = 1, p.to do ctx.emit { n = n } end
            end }
        dodona.method { name = "once", doc = "Emits where it cannot.", read_only = true,
            run = function(ctx) ctx.emit { n = 1 } end }
    "#;
    home.plugin("ticker", script);
    let hub = home.start().await;
    let all = items(&hub, "ticker.count", json!({"to": 3})).await;
    let text = json!(all).to_string();
    assert!(text.contains("\"content_type\":\"Tick\""), "{text}");
    assert!(text.contains("counting"), "{text}");
    assert_eq!(text.matches("\"n\":").count(), 3, "{text}");
    let last = ask(&hub, "ticker.count", json!({"to": 5})).await.unwrap();
    assert_eq!(last["n"], 5);
    let error = ask(&hub, "ticker.once", json!({})).await.unwrap_err();
    assert!(error.contains("streaming = true"), "{error}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_script_is_told_with_its_line() {
    let cases = [
        ("syntax", "local x =\n", "main.luau:"),
        ("fails", "\n\nerror('no luck')", "main.luau:3: no luck"),
        (
            "unknown",
            "\ndodona.method { name = 'x', doc = 'X.', rum = 1, run = print }",
            "main.luau:2: unknown field `rum`",
        ),
        (
            "undocumented",
            "dodona.method { name = 'x', doc = '', run = print }",
            "`doc` is empty",
        ),
        (
            "schemaless",
            "dodona.method { name = 'x', doc = 'X.', params = { type = 'string' }, run = print }",
            "type = \"object\"",
        ),
        (
            "badschema",
            "dodona.method { name = 'x', doc = 'X.', params = { type = 'object', required = 3 }, run = print }",
            "not a JSON Schema",
        ),
        (
            "foreign",
            "dodona.method { name = 'echo.say', doc = 'X.', run = print }",
            "belongs to another plugin",
        ),
        (
            "twice",
            "for _ = 1, 2 do dodona.method { name = 'x', doc = 'X.', run = print } end",
            "twice",
        ),
        (
            "nameless",
            "dodona.method { name = '../x', doc = 'X.', run = print }",
            "main.luau:1:",
        ),
        (
            "point",
            "\ndodona.hook('PRE_TOOL_EXECUT', function() end)",
            "did you mean `PRE_TOOL_EXECUTE`",
        ),
        (
            "hookless",
            "dodona.hook('SESSION_END', function() end)",
            "turn_lifecycle",
        ),
        (
            "notagate",
            "dodona.hook('SESSION_END', { on_error = 'closed' }, function() end)",
            "`on_error` is for gates",
        ),
        (
            "requires",
            "\nrequire('x')",
            "main.luau:2: there is no `require`",
        ),
        (
            "waits",
            "dodona.state.get('x')",
            "cannot be used while the script is loaded",
        ),
        (
            "toolless",
            "dodona.method { name = 'x', doc = 'X.', agents = { 'oracle' }, run = print }",
            "set `tool = true`",
        ),
    ];
    let home = Home::new();
    for (name, script, _) in cases {
        home.plugin(name, script);
    }
    let hub = home.start().await;
    for (name, _, words) in cases {
        assert_failed(&hub, name, words);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_outside_of_its_directory_is_not_read() {
    let home = Home::new();
    home.plugin("linked", "");
    let outside = home.dir("outside.luau");
    std::fs::write(&outside, "error('I ran')").unwrap();
    std::fs::remove_file(home.dir("linked").join("main.luau")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, home.dir("linked").join("main.luau")).unwrap();
    let hub = home.start().await;
    assert_failed(&hub, "linked", "main.luau");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_marked_as_one_as_often_as_a_script_likes() {
    let home = Home::new();
    let script = r#"dodona.method { name = "give", doc = "Gives it back.", read_only = true,
        params = { type = "object", properties = { of = { type = "array" } } },
        run = function(_, p) return { of = dodona.list(dodona.list(p.of)), new = dodona.list() } end }"#;
    home.plugin("lists", script);
    let hub = home.start().await;
    let given = ask(&hub, "lists.give", json!({"of": []})).await.unwrap();
    assert_eq!(given, json!({"of": [], "new": []}));
    hub.stop().await;
}
