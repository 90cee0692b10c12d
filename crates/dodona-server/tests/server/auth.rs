//! Tokens, cookies and one-time links.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::http::Response;
use crate::support::{Server, until};
use crate::ws::UPGRADE;

const SAY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"echo.say","params":{"text":"x"}}"#;

async fn post(server: &Server, headers: &[(&str, &str)]) -> Response {
    let mut connection = server.connect().await;
    let headers = [headers, &[("Content-Type", "application/json")]].concat();
    connection
        .request("POST", "/rpc", &headers, SAY.as_bytes())
        .await;
    connection.response().await
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = server.connect().await;
    connection.request("GET", path, headers, b"").await;
    connection.try_response().await.unwrap()
}

#[tokio::test]
async fn nobody_comes_in_without_a_valid_token() {
    let server = Server::start().await;
    let good = server.token.clone();
    let (id, secret) = good.strip_prefix("dod_").unwrap().split_once('_').unwrap();
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    let other_end = if secret.ends_with('0') { "1" } else { "0" };
    let cases = [
        (None, 401),
        (Some(String::new()), 401),
        (Some("Bearer".to_owned()), 401),
        (Some("Bearer ".to_owned()), 401),
        (Some(format!("Basic {good}")), 401),
        (Some(good.clone()), 401),
        (Some(format!("Bearer={good}")), 401),
        (bearer("nonsense"), 401),
        (bearer(&good[..good.len() - 1]), 401),
        (
            bearer(&format!("{}{other_end}", &good[..good.len() - 1])),
            401,
        ),
        (bearer(&format!("{good}0")), 401),
        (
            bearer(&format!("dod_{}_{secret}", "0".repeat(id.len()))),
            401,
        ),
        (
            bearer(&format!("dod_{id}_{}", "0".repeat(secret.len()))),
            401,
        ),
        (bearer(&good.to_uppercase()), 401),
        (bearer(&format!("{good}, Bearer {good}")), 401),
        (Some("Bearer \u{e4}".to_owned()), 401),
        (bearer(&good), 200),
        (Some(format!("bearer {good}")), 200),
        (Some(format!("Bearer   {good}")), 200),
    ];
    for (value, status) in &cases {
        let headers: Vec<(&str, &str)> = value
            .iter()
            .map(|value| ("Authorization", value.as_str()))
            .collect();
        let response = post(&server, &headers).await;
        assert_eq!(response.status, *status, "{value:?}");
        let path = "/streams/00000000-0000-4000-8000-000000000000";
        let expected = if *status == 200 { 404 } else { 401 };
        assert_eq!(
            get(&server, path, &headers).await.status,
            expected,
            "{value:?}"
        );
        let upgrade = [UPGRADE.as_slice(), &headers].concat();
        let expected = if *status == 200 { 101 } else { 401 };
        let mut connection = server.connect().await;
        connection.request("GET", "/rpc", &upgrade, b"").await;
        assert_eq!(
            connection.head().await.unwrap().status,
            expected,
            "{value:?}"
        );
        if *status == 401 {
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            assert_eq!(response.code(), "auth.unauthenticated");
            assert!(!response.text().contains(secret), "a secret is told back");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_not_told() {
    let server = Server::start().await;
    let (alice, id) = server.token("alice", "test", &["echo:*"]).await;
    let unknown = format!("dod_{}_{}", "0".repeat(12), "0".repeat(64));
    let wrong = format!("dod_{id}_{}", "0".repeat(64));
    let answers = [
        server.with_token(&unknown).post(SAY).await,
        server.with_token(&wrong).post(SAY).await,
    ];
    assert_eq!(answers[0].body, answers[1].body);
    server.inside("hub.token_revoke", json!({"id": id})).await;
    assert_eq!(
        server.with_token(&alice).post(SAY).await.body,
        answers[0].body
    );
    server.stop().await;
}

#[tokio::test]
async fn an_expired_token_says_so() {
    let server = Server::start().await;
    let params = json!({"user": "alice", "name": "short", "scopes": ["echo:*"], "expires_in_s": 1});
    let made = server.inside("hub.token_create", params).await;
    let alice = server.with_token(made["token"].as_str().unwrap());
    let mut socket = alice.socket().await;
    assert_eq!(
        socket.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    until("the token to expire", async || {
        alice.post(SAY).await.status == 401
    })
    .await;
    let message = alice.post(SAY).await.json()["error"]["message"].clone();
    assert_eq!(message, "the token has expired");
    assert_eq!(socket.close_frame().await.unwrap().close_code(), 1008);
    server.stop().await;
}

#[tokio::test]
async fn a_token_grants_what_its_scopes_say() {
    let server = Server::start().await;
    let (token, _) = server.token("alice", "narrow", &["echo:use"]).await;
    let alice = server.with_token(&token);
    let mut socket = alice.socket().await;
    assert_eq!(
        socket.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    for method in [
        "hub.calls",
        "hub.tokens",
        "hub.token_create",
        "hub.login_code",
        "hub.plugins",
    ] {
        for answer in [
            alice.ask(method, json!({})).await,
            socket.ask(method, json!({})).await,
        ] {
            assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
        }
        let answer = socket.ask("hub.subscribe", json!({"method": method})).await;
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    let document = alice.call("rpc.discover", json!({})).await;
    let names: Vec<&str> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("echo.")),
        "{names:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_one_time_link_signs_a_page_in_once() {
    let server = Server::start().await;
    let owner = server.owner();
    let code = owner.call("hub.login_code", json!({})).await["code"]
        .as_str()
        .unwrap()
        .to_owned();
    let response = get(&server, &format!("/login?code={code}"), &[]).await;
    assert_eq!(
        (response.status, response.header("location")),
        (303, Some("/"))
    );
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let cookie = response.header("set-cookie").unwrap();
    for attribute in [
        "; HttpOnly",
        "; SameSite=Strict",
        "; Path=/",
        "; Max-Age=2592000",
    ] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    for wrong in [code.as_str(), "", "x", "%00"] {
        let again = get(&server, &format!("/login?code={wrong}"), &[]).await;
        assert_eq!(again.status, 401, "{wrong}");
        assert!(again.header("set-cookie").is_none());
    }
    server.stop().await;
}

#[tokio::test]
async fn many_pages_can_be_signed_in_at_once() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut codes = Vec::new();
    for _ in 0..30 {
        codes.push(
            owner.call("hub.login_code", json!({})).await["code"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let logins = codes.iter().map(|code| {
        let (server, path) = (&server, format!("/login?code={code}"));
        async move { get(server, &path, &[]).await.status }
    });
    let statuses = futures_util::future::join_all(logins).await;
    assert_eq!(statuses, vec![303; 30]);
    server.stop().await;
}

#[tokio::test]
async fn a_cookie_is_good_only_for_our_own_page() {
    let server = Server::start().await;
    let owner = server.owner();
    let code = owner.call("hub.login_code", json!({})).await["code"]
        .as_str()
        .unwrap()
        .to_owned();
    let response = get(&server, &format!("/login?code={code}"), &[]).await;
    let cookie = response
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let own = format!("http://{}", server.address);
    let others = format!("theme=dark; {cookie}; x=y");

    let posts: [(&[(&str, &str)], u16); 6] = [
        (&[("Cookie", &cookie), ("Origin", &own)], 200),
        (&[("Cookie", &others), ("Origin", &own)], 200),
        (&[("Cookie", &cookie)], 403),
        (
            &[("Cookie", &cookie), ("Origin", "http://evil.example")],
            403,
        ),
        (&[("Cookie", &cookie), ("Origin", "null")], 403),
        (
            &[("Cookie", "dodona_session=nonsense"), ("Origin", &own)],
            401,
        ),
    ];
    for (headers, status) in posts {
        assert_eq!(post(&server, headers).await.status, status, "{headers:?}");
        let upgrade = [UPGRADE.as_slice(), headers].concat();
        let expected = if status == 200 { 101 } else { status };
        let mut connection = server.connect().await;
        connection.request("GET", "/rpc", &upgrade, b"").await;
        assert_eq!(
            connection.head().await.unwrap().status,
            expected,
            "{headers:?}"
        );
    }
    // An EventSource of our own page sends no Origin.
    let stream = owner.begin("echo.count", json!({"to": 2})).await;
    owner.events(&stream, 0).await.items().await;
    let path = format!("/streams/{stream}");
    assert_eq!(
        get(&server, &path, &[("Cookie", &cookie)]).await.status,
        200
    );
    let foreign = [
        ("Cookie", cookie.as_str()),
        ("Origin", "http://evil.example"),
    ];
    assert_eq!(get(&server, &path, &foreign).await.status, 403);
    server.stop().await;
}

/// Everything that is logged, from everywhere.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// On one thread, so that the subscriber sees all of it.
#[tokio::test(flavor = "current_thread")]
async fn no_log_has_a_secret_in_it() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::trace!("the finest level is captured");

    let server = Server::start().await;
    let owner = server.owner();
    let (token, id) = server.token("alice", "test", &["echo:*", "hub:*"]).await;
    let alice = server.with_token(&token);
    let code = alice.call("hub.login_code", json!({})).await["code"]
        .as_str()
        .unwrap()
        .to_owned();
    let login = get(&server, &format!("/login?code={code}"), &[]).await;
    let cookie = login
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    let own = format!("http://{}", server.address);

    // Right and wrong uses of each.
    get(&server, &format!("/login?code={code}"), &[]).await;
    for headers in [
        vec![("Cookie", cookie.as_str()), ("Origin", own.as_str())],
        vec![("Cookie", cookie.as_str())],
    ] {
        post(&server, &headers).await;
    }
    let mut socket = alice.socket().await;
    socket.call("echo.say", json!({"text": "x"})).await;
    socket.frame(0x81, b"\xff").await;
    socket.connection.closed().await;
    alice.ask("echo.fail", json!({"message": "no"})).await;
    let wrong = format!("{}x", token);
    server.with_token(&wrong).post(SAY).await;
    let client = dodona_server::client::Client::connect(&own, &token, None)
        .await
        .unwrap();
    client.call("echo.say", json!({"text": "x"})).await.unwrap();
    let stream = alice.begin("echo.count", json!({"to": 2})).await;
    alice.events(&stream, 0).await.items().await;
    owner.call("hub.token_revoke", json!({"id": id})).await;
    alice.post(SAY).await;
    drop(client);
    let owners = server.token.clone();
    server.stop().await;

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        text.contains("TRACE") && text.contains("echo"),
        "the log is incomplete: {text}"
    );
    for (what, secret) in [
        ("token", &token),
        ("wrong token", &wrong),
        ("cookie", &session),
        ("code", &code),
        ("owner's token", &owners),
    ] {
        let line = text.lines().find(|line| line.contains(secret.as_str()));
        assert_eq!(line, None, "the {what} is in the log");
    }
}

#[tokio::test]
async fn a_project_that_is_none_is_not_found() {
    let server = Server::start().await;
    let bearer = server.owner().bearer();
    for wrong in ["nothing", "", "../x", "\u{e4}"] {
        let response = post(
            &server,
            &[("Authorization", &bearer), ("X-Dodona-Project", wrong)],
        )
        .await;
        let code = response.json()["error"]["data"]["code"].clone();
        assert_eq!(code, "hub.not_found", "{wrong}");
    }
    assert_eq!(
        post(&server, &[("Authorization", &bearer)]).await.json()["result"],
        json!({"text": "x"})
    );
    server.stop().await;
}
