//! Host and Origin, on every route and before any upgrade.

use serde_json::json;

use crate::http::Connection;
use crate::support::{Server, User};
use crate::ws::UPGRADE;

/// Every route, as somebody with a token asks for it.
const ROUTES: [(&str, &str); 7] = [
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/login?code=x"),
    ("GET", "/streams/00000000-0000-4000-8000-000000000000"),
    ("POST", "/rpc"),
    ("GET", "/nothing"),
];

/// Sends headers as they are; the status.
async fn ask(user: &User<'_>, verb: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut connection = Connection::open(user.address).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "echo.say", "params": {"text": "x"}})
        .to_string();
    let mut text = format!(
        "{verb} {path} HTTP/1.1\r\nAuthorization: {}\r\n",
        user.bearer()
    );
    if verb == "POST" {
        text.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    if verb == "POST" {
        text.push_str(&body);
    }
    connection.send(text.as_bytes()).await;
    connection.head().await.unwrap().status
}

#[tokio::test]
async fn only_our_own_names_are_taken_as_host() {
    let server = Server::builder()
        .options(|options| {
            options.allowed_hosts =
                vec!["dodona.example".to_owned(), "proxy.example:8443".to_owned()]
        })
        .start()
        .await;
    let owner = server.owner();
    let port = server.address.port();
    let cases = [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("LOCALHOST:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("dodona.example".to_owned(), 200),
        ("Dodona.Example:443".to_owned(), 200),
        ("proxy.example:8443".to_owned(), 200),
        ("proxy.example".to_owned(), 403),
        ("proxy.example:80".to_owned(), 403),
        ("127.0.0.1".to_owned(), 403),
        ("localhost".to_owned(), 403),
        (format!("127.0.0.1:{}", port ^ 1), 403),
        ("127.0.0.1:".to_owned(), 403),
        (format!("127.0.0.1:0{port}x"), 403),
        (format!("127.0.0.1:{port}:{port}"), 403),
        (format!("evil.example:{port}"), 403),
        (format!("127.0.0.1.evil.example:{port}"), 403),
        (format!("user@127.0.0.1:{port}"), 403),
        (format!("0.0.0.0:{port}"), 403),
        (format!("127.1:{port}"), 403),
        ("[::1]".to_owned(), 403),
        (format!("::1:{port}"), 403),
        ("sub.dodona.example".to_owned(), 403),
        (String::new(), 403),
    ];
    for (host, expected) in &cases {
        let status = ask(&owner, "POST", "/rpc", &[("Host", host)]).await;
        assert_eq!(status, *expected, "Host: {host}");
    }
    let own = cases[0].0.as_str();
    assert_eq!(ask(&owner, "POST", "/rpc", &[]).await, 400, "no Host");
    let twice = [("Host", own), ("Host", own)];
    assert_eq!(
        ask(&owner, "POST", "/rpc", &twice).await,
        400,
        "two of them"
    );
    let smuggled = [("Host", own), ("Host", "evil.example")];
    assert_eq!(ask(&owner, "POST", "/rpc", &smuggled).await, 400);
    server.stop().await;
}

#[tokio::test]
async fn only_our_own_pages_are_taken_as_origin() {
    let server = Server::builder()
        .options(|options| options.allowed_hosts = vec!["dodona.example".to_owned()])
        .start()
        .await;
    let owner = server.owner();
    let port = server.address.port();
    let host = server.address.to_string();
    let cases = [
        (format!("http://127.0.0.1:{port}"), 200),
        (format!("http://localhost:{port}"), 200),
        (format!("http://[::1]:{port}"), 200),
        ("https://dodona.example".to_owned(), 200),
        ("null".to_owned(), 403),
        (String::new(), 403),
        (host.clone(), 403),
        ("http://127.0.0.1".to_owned(), 403),
        (format!("http://127.0.0.1:{}", port ^ 1), 403),
        (format!("ws://127.0.0.1:{port}"), 403),
        (format!("file://127.0.0.1:{port}"), 403),
        (format!("http://evil.example:{port}"), 403),
        (format!("http://127.0.0.1:{port}.evil.example"), 403),
        (format!("http://127.0.0.1:{port}/path"), 403),
        (format!("http://127.0.0.1:{port}, http://evil.example"), 403),
        ("https://evil.example".to_owned(), 403),
        ("chrome-extension://abcdef".to_owned(), 403),
    ];
    for (origin, expected) in &cases {
        let status = ask(
            &owner,
            "POST",
            "/rpc",
            &[("Host", &host), ("Origin", origin)],
        )
        .await;
        assert_eq!(status, *expected, "Origin: {origin}");
    }
    let own = cases[0].0.as_str();
    let twice = [("Host", host.as_str()), ("Origin", own), ("Origin", own)];
    assert_eq!(ask(&owner, "POST", "/rpc", &twice).await, 403);
    server.stop().await;
}

#[tokio::test]
async fn every_route_is_guarded_and_the_upgrade_too() {
    let server = Server::start().await;
    let owner = server.owner();
    let host = server.address.to_string();
    let upgrade = UPGRADE.map(|(name, value)| (name, value));
    for wrong in [
        vec![("Host", "evil.example")],
        vec![("Host", host.as_str()), ("Origin", "http://evil.example")],
    ] {
        for (verb, path) in ROUTES {
            assert_eq!(ask(&owner, verb, path, &wrong).await, 403, "{verb} {path}");
        }
        let headers = [upgrade.as_slice(), &wrong].concat();
        assert_eq!(ask(&owner, "GET", "/rpc", &headers).await, 403);
    }
    let right = [upgrade.as_slice(), &[("Host", host.as_str())]].concat();
    assert_eq!(ask(&owner, "GET", "/rpc", &right).await, 101);
    server.stop().await;
}

#[tokio::test]
async fn the_loopback_of_ipv6_is_served() {
    let server = Server::builder().listen("[::1]:0").start().await;
    assert!(server.address.is_ipv6());
    server.still_serves().await;
    server.stop().await;
}
