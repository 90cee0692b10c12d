//! `dodona.http`, `dodona.on_event`, `dodona.publish`: what a script may use beside its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dodona_plugin::http::HttpClient;
use dodona_testkit::TestHub;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Home, ask, assert_active, assert_failed, log};

/// A server that answers by the path; and the number of requests.
async fn serve() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
                let body = loop {
                    let count = socket.read(&mut chunk).await.unwrap_or(0);
                    head.extend_from_slice(&chunk[..count]);
                    let text = String::from_utf8_lossy(&head).into_owned();
                    let Some((before, body)) = text.split_once("\r\n\r\n") else {
                        continue;
                    };
                    let length = before.to_lowercase();
                    let length = length.split("content-length: ").nth(1);
                    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
                    if body.len() >= length.unwrap_or(0) || count == 0 {
                        break body.to_owned();
                    }
                };
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = answer(&path, &head, &body, port).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    (port, requests)
}

async fn answer(path: &str, head: &str, body: &str, port: u16) -> String {
    let ok = |kind: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    };
    let to = |url: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    };
    match path {
        "/json" => ok("application/json", r#"{"answer": 42}"#),
        "/echo" => ok(
            "text/plain",
            &format!("{}|{body}", head.lines().next().unwrap()),
        ),
        "/headers" => ok("text/plain", head),
        "/hop" => to("/json"),
        "/loop" => to("/loop"),
        "/elsewhere" => to("http://other.example/"),
        "/metadata" => to("http://169.254.169.254/latest/"),
        "/self" => to(&format!("http://localhost:{port}/json")),
        "/large" => ok("text/plain", &"x".repeat(3 << 20)),
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ok("text/plain", "late")
        }
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nconnection: close\r\n\r\ngone"
            .to_owned(),
    }
}

const CLIENT: &str = r#"
    dodona.method { name = "get", doc = "Gets.", read_only = true,
        params = { type = "object", properties = { url = { type = "string" }, options = { type = "object" } } },
        run = function(_, p)
            local response = dodona.http.get(p.url, p.options)
            return { status = response.status, body = response.body, json = response.json, url = response.url }
        end }
    dodona.method { name = "post", doc = "Posts.",
        params = { type = "object", properties = { url = { type = "string" } } },
        run = function(_, p)
            return { body = dodona.http.post(p.url, { json = { n = 1 }, headers = { ["x-key"] = "k" } }).body }
        end }
"#;

async fn with_client(home: &Home, uses: &[&str], allowed: Vec<String>) -> TestHub {
    home.granted("client", uses, CLIENT);
    let builder = TestHub::builder().config(|config| config.http = HttpClient::new(&allowed));
    let hub = home.start_with(builder).await;
    assert_active(&hub, "client");
    hub
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_requests_the_hosts_that_it_is_granted() {
    let (port, _) = serve().await;
    let host = format!("127.0.0.1:{port}");
    let home = Home::new();
    let hub = with_client(&home, &[&format!("net:{host}")], vec![host.clone()]).await;
    let get = |path: &str, options: Value| {
        let params = json!({"url": format!("http://{host}{path}"), "options": options});
        ask(&hub, "client.get", params)
    };
    let answer = get("/json", json!({})).await.unwrap();
    assert_eq!(
        (&answer["status"], &answer["json"]["answer"]),
        (&json!(200), &json!(42))
    );
    let hopped = get("/hop", json!({})).await.unwrap();
    assert!(
        hopped["url"].as_str().unwrap().ends_with("/json"),
        "{hopped}"
    );
    assert_eq!(
        get("/hop", json!({"max_redirects": 0})).await.unwrap()["status"],
        302
    );
    assert_eq!(get("/nothing", json!({})).await.unwrap()["status"], 404);
    let posted = ask(
        &hub,
        "client.post",
        json!({"url": format!("http://{host}/echo")}),
    )
    .await;
    assert_eq!(posted.unwrap()["body"], "POST /echo HTTP/1.1|{\"n\":1}");
    for (path, options, why) in [
        ("/loop", json!({}), "too many redirects"),
        ("/large", json!({}), "more than 2097152 bytes"),
        ("/slow", json!({"timeout": 0.3}), "took longer than"),
        ("/json", json!({"timeout": 3600}), "at most 60"),
        (
            "/json",
            json!({"headers": {"Host": "x"}}),
            "`Host` is set by the client",
        ),
        (
            "/json",
            json!({"headers": {"x": "a\r\nb: c"}}),
            "invalid header",
        ),
        ("/json", json!({"cookies": true}), "unknown field `cookies`"),
    ] {
        let told = get(path, options).await.unwrap_err();
        assert!(
            told.contains(why) && told.contains("main.luau:5"),
            "{path}: {told}"
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_leaves_for_a_host_that_is_not_granted_or_not_public() {
    let (port, requests) = serve().await;
    let host = format!("127.0.0.1:{port}");
    let home = Home::new();
    // Granted, and still private: the user has to allow that as well.
    let hub = with_client(
        &home,
        &[&format!("net:{host}"), "net:localhost"],
        Vec::new(),
    )
    .await;
    for url in [
        format!("http://{host}/json"),
        format!("http://localhost:{port}/json"),
        "http://example.org/".to_owned(),
        format!("http://2130706433:{port}/json"),
        "file:///etc/passwd".to_owned(),
    ] {
        let told = ask(&hub, "client.get", json!({ "url": url }))
            .await
            .unwrap_err();
        let expected = [
            "not on the public network",
            "is not granted",
            "its scheme is not",
        ];
        assert!(
            expected.iter().any(|words| told.contains(words)),
            "{url}: {told}"
        );
    }
    let told = ask(&hub, "client.get", json!({"url": "http://example.org/"}))
        .await
        .unwrap_err();
    assert!(
        told.contains("dodona plugins grant client net:example.org"),
        "{told}"
    );
    hub.stop().await;
    assert_eq!(requests.load(Ordering::SeqCst), 0);
    // A redirect is checked like the first URL.
    let home = Home::new();
    let hub = with_client(&home, &[&format!("net:{host}")], vec![host.clone()]).await;
    for (path, why) in [
        ("/elsewhere", "access to `other.example` is not granted"),
        ("/metadata", "access to `169.254.169.254` is not granted"),
        ("/self", "is not granted"),
    ] {
        let url = format!("http://{host}{path}");
        let told = ask(&hub, "client.get", json!({ "url": url }))
            .await
            .unwrap_err();
        assert!(told.contains(why), "{path}: {told}");
    }
    hub.stop().await;
}

const LISTENER: &str = r#"
    local d = dodona
    d.on_event("custom.release", { name = "releases" }, function(event)
        if event.payload.version == "broken" then error("no such version") end
        d.db.execute("INSERT INTO seen (type, version, user) VALUES (?, ?, ?)",
            { event.type, event.payload.version, event.user or d.null })
        d.state.set("last", event.payload.version)
        d.log.info("saw", event.payload.version)
        d.publish("custom.seen", { version = event.payload.version })
    end)
    d.method { name = "seen", doc = "Lists.", read_only = true, run = function()
        return { rows = d.list(d.db.query("SELECT type, version, user FROM seen ORDER BY rowid")), last = d.state.get("last") }
    end }
"#;

const PUBLISHER: &str = r#"
    dodona.method { name = "publish", doc = "Publishes.",
        params = { type = "object", properties = { type = { type = "string" }, payload = {} } },
        run = function(_, p) dodona.publish(p.type, p.payload) end }
"#;

fn listener(home: &Home) {
    home.granted("listener", &["events:custom.release"], LISTENER);
    let folder = home.dir("listener").join("migrations");
    std::fs::create_dir_all(&folder).unwrap();
    let sql = "CREATE TABLE seen (type TEXT, version TEXT, user TEXT) STRICT;";
    std::fs::write(folder.join("0001_seen.sql"), sql).unwrap();
    home.plugin("publisher", PUBLISHER);
}

async fn publish(hub: &TestHub, kind: &str, payload: Value) -> Result<Value, String> {
    ask(
        hub,
        "publisher.publish",
        json!({"type": kind, "payload": payload}),
    )
    .await
}

/// Waits until a method answers as wanted.
async fn until(hub: &TestHub, method: &str, so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..600 {
        let answer = ask(hub, method, json!({})).await.unwrap();
        if so(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("`{method}` never answered so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_hears_events_stores_them_and_publishes_its_own() {
    let home = Home::new();
    listener(&home);
    let hub = home.start().await;
    assert_active(&hub, "listener");
    let mut seen = hub.bus().subscribe("custom.seen");
    for kind in [
        "custom.release",
        "custom.release.done",
        "custom.releases",
        "custom.other",
    ] {
        publish(&hub, kind, json!({"version": kind})).await.unwrap();
    }
    // The script sets `last` after it has stored the row.
    let is_done = |answer: &Value| answer["last"] == "custom.release.done";
    let answer = until(&hub, "listener.seen", is_done).await;
    assert_eq!(
        answer["rows"],
        json!([
            {"type": "custom.release", "version": "custom.release", "user": "ada"},
            {"type": "custom.release.done", "version": "custom.release.done", "user": "ada"},
        ])
    );
    let next = tokio::time::timeout(Duration::from_secs(60), seen.next())
        .await
        .unwrap();
    let event = next.unwrap().unwrap();
    assert_eq!(
        (event.source.as_str(), event.user.as_ref().unwrap().as_str()),
        ("listener", "ada")
    );
    // What it publishes is caused by what it heard.
    assert_eq!(event.causes, ["custom.release"]);
    // One that fails is logged, and the next event comes all the same.
    publish(&hub, "custom.release", json!({"version": "broken"}))
        .await
        .unwrap();
    publish(&hub, "custom.release", json!({"version": "after"}))
        .await
        .unwrap();
    until(&hub, "listener.seen", |answer| answer["last"] == "after").await;
    let lines = log(&hub, "listener").await;
    assert!(
        lines.iter().any(|line| line.contains("no such version")),
        "{lines:#?}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_need_their_capability_and_types_of_plugins_begin_with_custom() {
    let home = Home::new();
    home.granted(
        "sneaky",
        &["events:custom.release"],
        "dodona.on_event('tool.call', function() end)",
    );
    home.granted(
        "greedy",
        &["events:custom"],
        "dodona.on_event('', function() end)",
    );
    home.plugin("publisher", PUBLISHER);
    let hub = home.start().await;
    assert_failed(
        &hub,
        "sneaky",
        "without the capability `events:tool.call`; run `dodona plugins grant sneaky events:tool.call`",
    );
    assert_failed(&hub, "greedy", "without the capability `events:*`");
    for kind in [
        "tool.call.success",
        "custom",
        "custom.",
        "custom.A",
        "custom..x",
        "",
    ] {
        let told = publish(&hub, kind, json!({})).await.unwrap_err();
        assert!(
            told.contains("not an event type of a plugin"),
            "{kind}: {told}"
        );
    }
    let told = publish(&hub, "custom.x", json!([1])).await.unwrap_err();
    assert!(told.contains("payload of an event is an object"), "{told}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_plugins_that_answer_each_other_stop() {
    let home = Home::new();
    let echo = |from: &str, to: &str| {
        format!(
            "dodona.on_event('custom.{from}', function() dodona.publish('custom.{to}', {{}}) end)"
        )
    };
    home.granted("ping", &["events:custom.pong"], &echo("pong", "ping"));
    home.granted("pong", &["events:custom.ping"], &echo("ping", "pong"));
    home.plugin("publisher", PUBLISHER);
    let hub = home.start().await;
    publish(&hub, "custom.ping", json!({})).await.unwrap();
    for _ in 0..600 {
        let lines = [log(&hub, "ping").await, log(&hub, "pong").await].concat();
        if lines
            .iter()
            .any(|line| line.contains("events have led to each other already"))
        {
            hub.stop().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the chain did not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_let_go_hears_nothing_more() {
    let home = Home::new();
    listener(&home);
    let hub = home.start().await;
    publish(&hub, "custom.release", json!({"version": "1"}))
        .await
        .unwrap();
    until(&hub, "listener.seen", |answer| answer["last"] == "1").await;
    let disable = json!({"plugin": "listener"});
    ask(&hub, "plugins.disable", disable.clone()).await.unwrap();
    publish(&hub, "custom.release", json!({"version": "2"}))
        .await
        .unwrap();
    ask(&hub, "plugins.enable", disable).await.unwrap();
    publish(&hub, "custom.release", json!({"version": "3"}))
        .await
        .unwrap();
    let answer = until(&hub, "listener.seen", |answer| answer["last"] == "3").await;
    let versions: Vec<&Value> = answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["version"])
        .collect();
    assert_eq!(versions, ["1", "3"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_asks_what_its_caller_may_do() {
    let home = Home::new();
    home.plugin("asker", "dodona.method { name = 'may', doc = 'Asks.', read_only = true, run = function(ctx) return { vault = ctx.has_scope('vault:write') } end }");
    let hub = home.start().await;
    assert_eq!(
        ask(&hub, "asker.may", json!({})).await.unwrap()["vault"],
        true
    );
    hub.stop().await;
}
