//! Peers that are slow, silent, too many or talk nonsense.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::http::Connection;
use crate::support::{Server, until};

const SAY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"echo.say","params":{"text":"x"}}"#;

#[tokio::test]
async fn headers_that_never_end_are_not_waited_for() {
    let server = Server::builder()
        .options(|options| options.header_timeout = Duration::from_millis(200))
        .start()
        .await;
    // One says nothing at all, the others a little all the time.
    let mut silent = server.connect().await;
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let address = server.address;
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await;
                let head = format!("POST /rpc HTTP/1.1\r\nHost: {address}\r\n");
                if connection.try_send(head.as_bytes()).await.is_err() {
                    return;
                }
                while connection.try_send(b"X-A: b\r\n").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
        })
        .collect();
    while slow.iter().any(|task| !task.is_finished()) {
        server.still_serves().await;
    }
    silent.closed().await;
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_not_waited_for() {
    let server = Server::builder()
        .options(|options| options.body_timeout = Duration::from_millis(200))
        .start()
        .await;
    let owner = server.owner();
    let mut connection = server.connect().await;
    let headers = [
        ("Authorization", owner.bearer()),
        ("Content-Type", "application/json".to_owned()),
        ("Content-Length", "1000".to_owned()),
    ];
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut head = format!("POST /rpc HTTP/1.1\r\nHost: {}\r\n", connection.host);
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    connection.send(format!("{head}\r\n").as_bytes()).await;
    for _ in 0..5 {
        let _ = connection.try_send(b" ").await;
        server.still_serves().await;
    }
    let response = connection.response().await;
    assert_eq!(response.status, 408);
    connection.closed().await;
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_closes_its_half_counts_as_gone() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut connection = server.connect().await;
    let slow = r#"{"jsonrpc":"2.0","id":1,"method":"echo.slow","params":{"ms":600000}}"#;
    connection.post(&owner.token, slow.as_bytes()).await;
    until("the call to run", async || server.running() == 1).await;
    connection.stream.shutdown().await.unwrap();
    until("the call to end", async || server.running() == 0).await;
    connection.closed().await;
    server.stop().await;
}

#[tokio::test]
async fn a_caller_that_vanishes_stops_its_call() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut connection = server.connect().await;
    let slow = r#"{"jsonrpc":"2.0","id":1,"method":"echo.slow","params":{"ms":600000}}"#;
    connection.post(&owner.token, slow.as_bytes()).await;
    until("the call to run", async || server.running() == 1).await;
    // A reset, not a farewell.
    rustix::net::sockopt::set_socket_linger(&connection.stream, Some(Duration::ZERO)).unwrap();
    drop(connection);
    until("the call to end", async || server.running() == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn connections_over_the_limit_are_answered_with_503_whatever_the_others_are() {
    let server = Server::builder()
        .options(|options| options.connections = 4)
        .start()
        .await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 2, "delay_ms": 60_000}))
        .await;
    // Idle, reading, and upgraded: each holds a place.
    let mut idle = server.connect().await;
    idle.post(&owner.token, SAY.as_bytes()).await;
    idle.response().await;
    let mut reading = owner.events(&stream, 0).await;
    reading.item().await.unwrap().unwrap();
    let (mut one, two) = (owner.socket().await, owner.socket().await);
    one.call("echo.say", json!({"text": "x"})).await;

    for _ in 0..50 {
        let mut refused = server.connect().await;
        refused.post(&owner.token, SAY.as_bytes()).await;
        let response = refused.response().await;
        assert_eq!(response.status, 503);
        assert_eq!(response.header("retry-after"), Some("5"));
    }
    // Those who are in are served.
    assert_eq!(
        one.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    drop(two);
    until("a place to be free", async || {
        let mut again = server.connect().await;
        again.post(&owner.token, SAY.as_bytes()).await;
        again.response().await.status == 200
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_target_that_names_another_host_is_refused() {
    let server = Server::start().await;
    let owner = server.owner();
    let port = server.address.port();
    for (target, status) in [
        (format!("http://127.0.0.1:{port}/rpc"), 200),
        ("http://evil.com/rpc".to_owned(), 403),
        (format!("http://evil.com:{port}/rpc"), 403),
        (format!("http://127.0.0.1:{}/rpc", port ^ 1), 403),
        (format!("http://127.0.0.1:{port}@evil.com/rpc"), 403),
    ] {
        let mut connection = server.connect().await;
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{SAY}",
            owner.bearer(),
            SAY.len()
        );
        connection.send(head.as_bytes()).await;
        assert_eq!(connection.head().await.unwrap().status, status, "{target}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_needs_a_key_of_16_bytes() {
    let server = Server::start().await;
    let owner = server.owner();
    for (key, status) in [
        ("dGhlIHNhbXBsZSBub25jZQ==", 101),
        ("AAAA", 400),
        ("AAAAAAAAAAAAAAAAAAAAAA", 400),
        ("AAAAAAAAAAAAAAAAAAAAAB==", 400),
        ("AAAAAAAAAAAAAAAAAAAAAAAA", 400),
        ("!!!!!!!!!!!!!!!!!!!!!A==", 400),
        (
            "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            400,
        ),
    ] {
        let mut connection = server.connect().await;
        let head = format!(
            "GET /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n",
            server.address,
            owner.bearer()
        );
        connection.send(head.as_bytes()).await;
        assert_eq!(connection.head().await.unwrap().status, status, "{key}");
    }
    server.stop().await;
}

#[tokio::test]
async fn requests_that_two_could_read_differently_are_refused() {
    let server = Server::start().await;
    let bearer = server.owner().bearer();
    let host = server.address.to_string();
    let common = format!(
        "POST /rpc HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n"
    );
    let inner = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let length = SAY.len();
    let refused = [
        (
            "two lengths",
            format!("{common}Content-Length: {length}\r\nContent-Length: 0\r\n\r\n{SAY}"),
        ),
        (
            "two lengths in one",
            format!("{common}Content-Length: {length}, 0\r\n\r\n{SAY}"),
        ),
        (
            "a negative length",
            format!("{common}Content-Length: -1\r\n\r\n{SAY}"),
        ),
        (
            "a length with a sign",
            format!("{common}Content-Length: +{length}\r\n\r\n{SAY}"),
        ),
        (
            "an endless length",
            format!("{common}Content-Length: 99999999999999999999\r\n\r\n{SAY}"),
        ),
        (
            "an encoding that is not the last",
            format!("{common}Transfer-Encoding: chunked, gzip\r\n\r\n{SAY}"),
        ),
        (
            "an unknown encoding",
            format!("{common}Transfer-Encoding: xchunked\r\n\r\n{SAY}"),
        ),
        (
            "a chunk of no size",
            format!("{common}Transfer-Encoding: chunked\r\n\r\nxyz\r\n{SAY}\r\n0\r\n\r\n"),
        ),
        (
            "a folded header",
            format!("{common}X-A: b\r\n c\r\nContent-Length: {length}\r\n\r\n{SAY}"),
        ),
        (
            "a space before the colon",
            format!("{common}Content-Length : {length}\r\n\r\n{SAY}"),
        ),
        (
            "a nul in a header",
            format!("{common}X-A: \0\r\nContent-Length: {length}\r\n\r\n{SAY}"),
        ),
        ("no version", format!("POST /rpc\r\nHost: {host}\r\n\r\n")),
        (
            "another protocol",
            "\u{16}\u{3}\u{1}\0\u{5}hello".to_owned(),
        ),
        (
            "HTTP/2 without asking",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        (
            "headers without end",
            format!("{common}X-A: {}\r\n\r\n", "a".repeat(1 << 20)),
        ),
        (
            "a hundred headers too many",
            format!("{common}{}\r\n", "X-A: b\r\n".repeat(1000)),
        ),
    ];
    for (what, bytes) in refused {
        let mut connection = server.connect().await;
        let _ = connection.try_send(bytes.as_bytes()).await;
        let status = connection
            .try_response()
            .await
            .map(|response| response.status);
        assert!(
            matches!(status, None | Some(400 | 414 | 431 | 501 | 505)),
            "{what}: {status:?}"
        );
        // Nothing that follows on this connection is taken for a request.
        let _ = connection.try_send(inner.as_bytes()).await;
        assert_eq!(connection.try_response().await, None, "{what}");
    }

    // With both, the encoding counts and the connection ends, as RFC 9112 has it; what came
    // after is never a second request.
    let both =
        format!("{common}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}");
    let mut connection = server.connect().await;
    connection.send(both.as_bytes()).await;
    let first = connection.try_response().await;
    if let Some(first) = first {
        assert!(first.status == 400 || first.status == 200, "{first:?}");
        assert_eq!(
            connection.try_response().await,
            None,
            "a smuggled request was answered"
        );
    }
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn a_panic_in_a_method_is_the_calls_alone() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    for answer in [
        owner.ask("echo.panic", json!({})).await,
        socket.ask("echo.panic", json!({})).await,
    ] {
        assert_eq!(answer["error"]["data"]["code"], "call.panicked");
    }
    let stream = socket.subscribe(json!({"method": "echo.panic"})).await;
    let items = socket.items(&stream).await;
    assert_eq!(
        (&items[0]["recoverable"], &items[1]["status"]),
        (&json!(false), &json!("failed"))
    );
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn a_shutdown_waits_for_calls_but_not_for_ever() {
    let server = Server::builder()
        .options(|options| options.drain = Duration::from_millis(300))
        .start()
        .await;
    let owner = server.owner();
    let (mut short, mut long) = (server.connect().await, server.connect().await);
    let call = |ms: u64| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo.slow","params":{{"ms":{ms}}}}}"#)
    };
    short.post(&owner.token, call(100).as_bytes()).await;
    long.post(&owner.token, call(600_000).as_bytes()).await;
    let mut idle = server.connect().await;
    let mut upgraded = owner.socket().await;
    until("both to run", async || server.running() == 2).await;
    let address = server.address;
    server.shutdown.cancel();
    assert_eq!(short.response().await.json()["result"]["ms"], 100);
    assert_eq!(upgraded.close_frame().await.unwrap().close_code(), 1001);
    server.stop().await;
    let stopped = long.try_response().await;
    assert!(
        stopped.is_none_or(|answer| answer.json()["error"]["data"]["code"] == "call.cancelled")
    );
    idle.closed().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
