//! What jsonrpsee's own server does with requests that ours answers. Decision 0018 rests on it: when
//! an upgrade makes one of these tests fail, read the decision again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jsonrpsee::RpcModule;
use jsonrpsee::core::client::SubscriptionClientT;
use jsonrpsee::core::params::ObjectParams;
use jsonrpsee::core::server::{Methods, PendingSubscriptionSink};
use jsonrpsee::server::ServerBuilder;
use jsonrpsee::ws_client::WsClientBuilder;
use serde_json::{Value, json};

use crate::http::Connection;
use crate::support::{Server, soon, until};

/// What the methods of the peer have seen.
#[derive(Default)]
struct Seen {
    calls: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

fn module(seen: &Arc<Seen>) -> RpcModule<Seen> {
    let mut module = RpcModule::from_arc(Arc::clone(seen));
    let count = |_, seen: Arc<Seen>, _| async move {
        let now = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most_running.fetch_max(now, Ordering::SeqCst);
        // Long enough for every other call to start, if one could.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        seen.running.fetch_sub(1, Ordering::SeqCst);
        seen.calls.fetch_add(1, Ordering::SeqCst) + 1
    };
    module.register_async_method("count", count).unwrap();
    let panics = |_, _, _| async { panic!("as the test wants") };
    module
        .register_async_method::<Value, _, _>("panic", panics)
        .unwrap();
    let watch = |_, pending: PendingSubscriptionSink, seen: Arc<Seen>, _| async move {
        let _sink = pending.accept().await;
        loop {
            seen.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    module
        .register_subscription::<(), _, _>("watch", "item", "unwatch", watch)
        .unwrap();
    module
}

async fn start(methods: impl Into<Methods>) -> SocketAddr {
    let server = ServerBuilder::default().build("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    tokio::spawn(server.start(methods).stopped());
    address
}

/// What the peer answers; null for an empty body.
async fn post(address: SocketAddr, body: &str) -> Value {
    let mut connection = Connection::open(address).await;
    connection.post("", body.as_bytes()).await;
    let body = connection.response().await.body;
    match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body).unwrap(),
    }
}

#[tokio::test]
async fn requests_with_ids_beyond_u64_have_no_answer_from_the_peer_and_one_from_us() {
    let seen = Arc::default();
    let peer = start(module(&seen)).await;
    let server = Server::start().await;
    for id in ["-1", "1.5", "18446744073709551616", "1e3"] {
        let request = |method: &str, params: Value| {
            let id: &serde_json::value::RawValue = serde_json::from_str(id).unwrap();
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        };
        // Such an id is not one to it, so it takes the request for a notification.
        let silent = post(peer, &request("count", json!({}))).await;
        assert_eq!(silent, Value::Null, "{id}");
        assert_eq!(seen.calls.load(Ordering::SeqCst), 0, "{id}");
        let answer = server
            .owner()
            .post(request("echo.say", json!({"text": "x"})))
            .await
            .text();
        assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_peer_does_not_run_notifications() {
    let seen = Arc::default();
    let peer = start(module(&seen)).await;
    let silent = post(peer, r#"{"jsonrpc":"2.0","method":"count","params":{}}"#).await;
    assert_eq!(silent, Value::Null);
    let answer = post(
        peer,
        r#"{"jsonrpc":"2.0","id":1,"method":"count","params":{}}"#,
    )
    .await;
    assert_eq!(answer["result"], 1);
    assert_eq!(seen.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_peer_runs_a_batch_one_call_after_the_other() {
    let seen = Arc::default();
    let peer = start(module(&seen)).await;
    let calls: Vec<Value> = (0..20)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "count", "params": {}}))
        .collect();
    let answers = post(peer, &json!(calls).to_string()).await;
    assert_eq!(answers.as_array().unwrap().len(), 20);
    assert_eq!(seen.most_running.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_panics_has_no_answer_from_the_peer_and_one_from_us() {
    let peer = start(module(&Arc::default())).await;
    let mut connection = Connection::open(peer).await;
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"panic","params":{}}"#;
    connection.post("", request).await;
    assert_eq!(connection.head().await, None, "the connection just ends");
    let server = Server::start().await;
    let answer = server.owner().ask("echo.panic", json!({})).await;
    assert_eq!(answer["error"]["data"]["code"], "call.panicked", "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn unsubscribing_does_not_stop_the_work_of_the_peer() {
    let seen = Arc::default();
    let peer = start(module(&seen)).await;
    let client = WsClientBuilder::default()
        .build(format!("ws://{peer}"))
        .await
        .unwrap();
    let subscribed = client
        .subscribe::<Value, _>("watch", ObjectParams::new(), "unwatch")
        .await
        .unwrap();
    until("the first work", async || {
        seen.calls.load(Ordering::SeqCst) > 0
    })
    .await;
    soon("unsubscribing", subscribed.unsubscribe())
        .await
        .unwrap();
    let then = seen.calls.load(Ordering::SeqCst);
    until("more work for a client that is gone", async || {
        seen.calls.load(Ordering::SeqCst) > then + 20
    })
    .await;
}

#[tokio::test]
async fn the_peer_does_not_see_methods_that_are_registered_after_its_start() {
    let mut module = module(&Arc::default());
    let peer = start(module.clone()).await;
    module
        .register_method("late", |_, _, _| Value::Null)
        .unwrap();
    let answer = post(peer, r#"{"jsonrpc":"2.0","id":1,"method":"late"}"#).await;
    assert_eq!(answer["error"]["code"], -32601);
}
