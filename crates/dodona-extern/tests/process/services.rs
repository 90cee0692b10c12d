//! What a process may use of the server: database, state, events, HTTP.

use std::fs;

use dodona_plugin::http::HttpClient;
use dodona_testkit::TestHub;
use serde_json::{Value, json};

use crate::support::{Home, ask, ask_until, assert_active, assert_failed, log};

const DECLARES: &str = r#"
events = ["custom.release"]
[[process.methods]]
name = "ask"
doc = "Send a request to the server."
params = { type = "object", properties = { method = { type = "string" }, params = { type = "object" } } }
"#;

const PROGRAM: &str = r#"
def initialize(params):
    try: ask("db.query", sql="SELECT 1")
    except RuntimeError as error: notify("log", level="info", message="early: " + str(error))

def call(request):
    return {"result": ask(request["params"]["method"], **request["params"].get("params", {}))}

def event(request):
    told = request["event"]
    ask("db.execute", sql="INSERT INTO seen (type, user) VALUES (?, ?)", params=[told["type"], told["user"]])
    ask("state.set", key="last", value=told["payload"])
    ask("events.publish", type="custom.seen", payload={"n": 1})
    notify("metric.count", name="events")
    notify("metric.time", name="bad name", seconds=1)

serve(initialize=initialize, call=call, event=event)
"#;

fn probe() -> Home {
    let home = Home::new();
    home.plugin(
        "probe",
        &["events:custom.release", "net:example.org"],
        DECLARES,
        PROGRAM,
    );
    migration(
        &home,
        "0001_seen.sql",
        "CREATE TABLE seen (id INTEGER PRIMARY KEY, type TEXT, user TEXT) STRICT;\n",
    );
    let script = "dodona.method { name = 'publish', doc = 'Publishes.', params = { type = 'object', properties = { type = { type = 'string' }, payload = {} } }, run = function(_, p) dodona.publish(p.type, p.payload) end }";
    home.target();
    fs::write(home.dir("target").join("main.luau"), script).unwrap();
    home
}

fn migration(home: &Home, name: &str, sql: &str) {
    let folder = home.dir("probe").join("migrations");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), sql).unwrap();
}

async fn through(hub: &TestHub, method: &str, params: Value) -> Result<Value, String> {
    let answer = ask(
        hub,
        "probe.ask",
        json!({"method": method, "params": params}),
    )
    .await;
    answer.map(|mut answer| answer["result"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_has_a_database_of_its_own_behind_the_protocol() {
    let home = probe();
    let hub = home.start().await;
    assert_active(&hub, "probe");
    let insert = "INSERT INTO seen (type, user) VALUES (?, ?)";
    let done = through(
        &hub,
        "db.execute",
        json!({"sql": insert, "params": ["a", null]}),
    )
    .await;
    assert_eq!(done.unwrap(), json!({"changes": 1, "last_insert_id": 1}));
    let statements = json!({"statements": [
        {"sql": insert, "params": ["b", "ada"]},
        {"sql": "UPDATE seen SET user = 'bob' WHERE user IS NULL"},
    ]});
    let done = through(&hub, "db.transaction", statements).await.unwrap();
    assert_eq!(done.as_array().unwrap().len(), 2);
    // All or none.
    let half = json!({"statements": [
        {"sql": "DELETE FROM seen"},
        {"sql": "INSERT INTO nowhere VALUES (1)"},
    ]});
    let failed = through(&hub, "db.transaction", half).await.unwrap_err();
    assert!(failed.contains("no such table: nowhere"), "{failed}");
    let rows = through(
        &hub,
        "db.query",
        json!({"sql": "SELECT type, user FROM seen ORDER BY id"}),
    )
    .await;
    assert_eq!(
        rows.unwrap(),
        json!([{"type": "a", "user": "bob"}, {"type": "b", "user": "ada"}])
    );
    for sql in [
        "ATTACH 'x' AS y",
        "PRAGMA user_version",
        "VACUUM INTO 'x'",
        "BEGIN",
    ] {
        through(&hub, "db.query", json!({ "sql": sql }))
            .await
            .expect_err(sql);
    }
    let early = log(&hub, "probe").await;
    let told = "info log: early: the database cannot be used before `initialize` is answered";
    assert!(early.iter().any(|line| line == told), "{early:#?}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_migration_fails_the_plugin_and_nothing_of_it_runs() {
    let home = probe();
    migration(
        &home,
        "0002_bad.sql",
        "DELETE FROM seen;\nINSERT INTO seen (colour) VALUES (1);\n",
    );
    let hub = home.start().await;
    assert_failed(
        &hub,
        "probe",
        "`migrations/0002_bad.sql`) of `plugins/probe/probe.db` failed at line 2",
    );
    assert_failed(&hub, "probe", "no column named colour");
    let refused = ask(&hub, "probe.ask", json!({})).await.unwrap_err();
    assert!(refused.starts_with("plugin.not_active"), "{refused}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_to_a_process_and_state_belongs_to_their_user() {
    let home = probe();
    let hub = home.start().await;
    let mut seen = hub.bus().subscribe("custom.seen");
    let publish = json!({"type": "custom.release", "payload": {"version": 7}});
    ask(&hub, "target.publish", publish).await.unwrap();
    let event = tokio::time::timeout(crate::support::PATIENCE, seen.next())
        .await
        .unwrap();
    let event = event.unwrap().unwrap();
    assert_eq!(event.causes, ["custom.release"]);
    assert_eq!(event.user.as_ref().unwrap().as_str(), "ada");
    let last = through(&hub, "state.get", json!({"key": "last"}))
        .await
        .unwrap();
    assert_eq!(last, json!({"version": 7}));
    let rows = through(
        &hub,
        "db.query",
        json!({"sql": "SELECT type, user FROM seen"}),
    )
    .await;
    assert_eq!(
        rows.unwrap(),
        json!([{"type": "custom.release", "user": "ada"}])
    );
    let lines = log(&hub, "probe").await;
    assert!(
        lines
            .iter()
            .any(|line| line.contains("`bad name` is not a metric's name")),
        "{lines:#?}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_the_server_are_checked() {
    let home = probe();
    let builder = TestHub::builder().config(|config| config.http = HttpClient::new(&[]));
    let hub = home.start_with(builder).await;
    for (method, params, why) in [
        ("nothing.there", json!({}), "there is no `nothing.there`"),
        ("db.drop", json!({}), "there is no `db.drop`"),
        ("state.burn", json!({}), "there is no `state.burn`"),
        (
            "db.query",
            json!({"sql": 3}),
            "the statement must be a text",
        ),
        (
            "db.query",
            json!({"sql": "SELECT ?", "params": {"a": 1}}),
            "must be a list",
        ),
        ("db.transaction", json!({}), "`statements` must be a list"),
        (
            "events.publish",
            json!({"type": "tool.call"}),
            "not an event type of a plugin",
        ),
        (
            "http.request",
            json!({"url": "http://127.0.0.1/"}),
            "is not granted",
        ),
        (
            "http.request",
            json!({"url": "https://example.com/"}),
            "dodona plugins grant probe net:example.com",
        ),
        ("http.request", json!({}), "missing field `url`"),
        (
            "host.call",
            json!({"method": "echo.say", "params": {"text": "x"}}),
            "echo",
        ),
        (
            "host.emit",
            json!({"data": {}}),
            "`host.emit` is for methods with `streaming = true`",
        ),
        (
            "auth.has_scope",
            json!({"scope": "no colon"}),
            "is not a scope",
        ),
        (
            "state.get",
            json!({"key": "x", "request": 999_999}),
            "`request` 999999 is not open",
        ),
    ] {
        let told = through(&hub, method, params).await.unwrap_err();
        assert!(told.contains(why), "{method}: {told}");
    }
    assert_eq!(
        through(&hub, "auth.has_scope", json!({"scope": "vault:write"}))
            .await
            .unwrap(),
        true
    );
    // After all of that it still works.
    ask_until(
        &hub,
        "probe.ask",
        json!({"method": "state.list", "params": {"prefix": ""}}),
    )
    .await;
    hub.stop().await;
}
